"""Masking tokens and drawing partners of the same class."""

from collections import Counter

import pytest
import torch
from torch import Tensor
from transformers import DataCollatorForLanguageModeling

from repcl.data import Batch, Example, InputKind, Span
from repcl.data.batches import collate
from repcl.methods.repcl import mask_tokens, same_class_partners
from repcl.model import Encoder
from tests.conftest import library_tokenizer, tiny_encoder, toy_example

KINDS: tuple[InputKind, ...] = ("sentence", "relation", "event")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def collated(encoder: Encoder, examples: list[Example]) -> Batch:
    rows = encoder.tokenize(examples)
    numbers = list(range(len(rows)))
    return collate(
        rows, numbers, numbers, pad_id=int(encoder.tokenizer.pad_token_id), device=torch.device("cpu")
    )


def mask_everything(encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
    special = torch.tensor(encoder.special_ids)
    return mask_tokens(
        batch.ids,
        ~torch.isin(batch.ids, special) & batch.mask.bool(),
        probability=1.0,
        mask_id=int(encoder.tokenizer.mask_token_id),
        generator=seeded(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_probability_one_masks_every_ordinary_token(kind: InputKind) -> None:
    encoder = tiny_encoder(kind)
    batch = collated(encoder, [toy_example(kind, "fruit", number) for number in range(4)])
    ids, _ = mask_everything(encoder, batch)
    names = {name for row in ids.tolist() for name in library_tokenizer(encoder).convert_ids_to_tokens(row)}
    assert names <= {"[CLS]", "[SEP]", "[PAD]", "[MASK]", *encoder.readout.markers}


def test_markers_and_special_tokens_are_never_masked() -> None:
    encoder = tiny_encoder("relation")
    example = Example("anna lives in paris", "place", head=Span(0, 4), tail=Span(14, 19))
    ids, _ = mask_everything(encoder, collated(encoder, [example]))
    assert library_tokenizer(encoder).convert_ids_to_tokens(ids[0].tolist()) == [
        "[CLS]", "[E11]", "[MASK]", "[E12]", "[MASK]", "[MASK]", "[E21]", "[MASK]", "[E22]", "[SEP]",
    ]  # fmt: skip


def test_padding_is_never_masked() -> None:
    encoder = tiny_encoder()
    batch = collated(encoder, [Example("rain", "x"), Example("the sun is warm", "x")])
    ids, masked = mask_everything(encoder, batch)
    assert masked[0].tolist() == [False, True, False, False, False, False]
    assert library_tokenizer(encoder).convert_ids_to_tokens(ids[0].tolist())[3:] == ["[PAD]"] * 3


def test_probability_zero_masks_nothing() -> None:
    ids = torch.arange(12).reshape(3, 4)
    kept, masked = mask_tokens(
        ids, torch.ones(3, 4, dtype=torch.bool), probability=0.0, mask_id=99, generator=seeded()
    )
    assert torch.equal(kept, ids)
    assert not masked.any()


def test_the_share_of_masked_tokens_is_near_the_probability() -> None:
    ids = torch.ones(400, 50, dtype=torch.long)
    _, masked = mask_tokens(ids, ids.bool(), probability=0.4, mask_id=0, generator=seeded())
    assert masked.float().mean().item() == pytest.approx(0.4, abs=0.015)  # four standard deviations


def test_masked_places_hold_the_mask_token_and_the_others_are_unchanged() -> None:
    ids = torch.arange(1000).reshape(10, 100) + 5
    changed, masked = mask_tokens(
        ids, torch.ones_like(ids, dtype=torch.bool), probability=0.5, mask_id=4, generator=seeded()
    )
    assert (changed[masked] == 4).all()
    assert torch.equal(changed[~masked], ids[~masked])


def test_masking_does_not_touch_the_ids_it_was_given() -> None:
    ids = torch.full((2, 3), 7)
    mask_tokens(ids, ids.bool(), probability=1.0, mask_id=0, generator=seeded())
    assert (ids == 7).all()


def test_masking_is_the_same_for_the_same_generator() -> None:
    ids = torch.ones(5, 20, dtype=torch.long)
    first, second = (
        mask_tokens(ids, ids.bool(), probability=0.5, mask_id=0, generator=seeded(3))[0] for _ in range(2)
    )
    assert torch.equal(first, second)


def test_transformers_own_collator_masks_the_same_places() -> None:
    encoder = tiny_encoder()
    batch = collated(
        encoder, [Example("the sun is warm", "x"), Example("漢 rain", "x"), Example("snow", "x")]
    )
    collator = DataCollatorForLanguageModeling(
        library_tokenizer(encoder), mlm_probability=1.0, mask_replace_prob=1.0, random_replace_prob=0.0
    )
    theirs = collator([{"input_ids": row} for row in batch.ids.tolist()])
    ids, masked = mask_everything(encoder, batch)
    assert torch.equal(masked, theirs["labels"] != -100)
    assert torch.equal(ids, theirs["input_ids"])


def test_a_partner_has_the_same_label_and_is_never_itself() -> None:
    labels = [0, 1, 0, 1, 1, 0, 2, 2]
    generator = seeded()
    for _ in range(50):
        partners = same_class_partners(range(8), labels, generator)
        assert [labels[partner] for partner in partners] == labels
        assert all(partner != row for row, partner in enumerate(partners))


def test_the_only_example_of_a_class_is_its_own_partner() -> None:
    assert same_class_partners([1, 0, 2], [0, 7, 0], seeded()) == [1, 2, 0]


def test_partners_are_drawn_uniformly_among_the_others() -> None:
    generator = seeded()
    drawn = Counter(same_class_partners([2], [5, 5, 5, 5], generator)[0] for _ in range(3000))
    assert set(drawn) == {0, 1, 3}
    assert all(count == pytest.approx(1000, abs=110) for count in drawn.values())  # four deviations


def test_partners_come_in_the_order_of_the_rows_that_asked() -> None:
    assert same_class_partners([3, 0, 2], [0, 1, 1, 0], seeded()) == [0, 3, 1]
