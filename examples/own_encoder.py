"""An encoder of your own, from a folder that transformers saved.

    python examples/own_encoder.py

The folder is made here, with random weights, so that nothing is downloaded; yours has trained ones. Weights
in safetensors and a fast tokenizer are all that is needed; code in a folder is never run.
"""

import tempfile

from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast

from repcl import ContinualClassifier

TEXTS = ["where is my parcel", "has my order been sent", "i want my money back", "please pay me back"]
LABELS = ["track", "track", "refund", "refund"]


def save_an_encoder(folder: str) -> None:
    """What `model.save_pretrained` and `tokenizer.save_pretrained` leave."""
    words = BertWordPieceTokenizer()
    words.train_from_iterator(TEXTS * 3, vocab_size=200, min_frequency=1, show_progress=False)
    tokenizer = BertTokenizerFast(tokenizer_object=words._tokenizer)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_an_encoder(folder)
        classifier = ContinualClassifier(encoder=folder)
        classifier.partial_fit(TEXTS, LABELS)
        print(classifier.predict(["where is my order"]))


if __name__ == "__main__":
    main()
