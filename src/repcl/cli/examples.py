"""What to type: the examples that every `--help` ends with."""

import typer

EXAMPLES = {
    "demo": ["repcl demo"],
    "bench": [
        "repcl bench --benchmark demo --method fea --method instant --out runs/x",
        "repcl bench --benchmark tickets.csv --tasks 5 --method refit --out runs/y",
    ],
    "report": ["repcl report runs/x"],
    "reproduce": ["repcl reproduce ablation --benchmark hwu64 --rounds 3 --out runs/z"],
    "analyze": ["repcl analyze runs/hwu64/hwu64/repcl/round-0"],
    "tune": ["repcl tune --method repcl --benchmark hwu64 --trials 20 --out runs/tune"],
    "learn": ["repcl learn desk tickets.csv", "repcl learn desk more.csv --label-column intent"],
    "predict": [
        'repcl predict desk "money back please" --top 3',
        "repcl predict desk --file inbox.csv --output answers.csv --unknown",
    ],
    "evaluate": ["repcl evaluate desk test.csv --errors wrong.csv"],
    "history": ["repcl history desk", "repcl history desk --keep-last 5"],
    "rollback": ["repcl rollback desk 3"],
    "accept": ["repcl accept desk"],
    "discard": ["repcl discard desk"],
    "export": ["repcl export desk", "repcl export desk --int8"],
    "improve": ["repcl improve desk", "repcl improve desk --data tickets.csv --set trained=fea"],
    "forget": ["repcl forget desk texts.csv"],
    "discover": ["repcl discover desk inbox.txt --output groups.csv"],
    "suggest": ["repcl suggest desk inbox.txt --most 20"],
    "drift": ["repcl drift desk this-month.csv --reference last-month.csv"],
    "serve": [
        "repcl serve desk --open",
        "repcl serve desk --token-file token.txt --collect --port 8080",
    ],
    "list": ["repcl list methods", "repcl list settings --method repcl"],
    "classes": ["repcl classes desk", 'repcl classes rename desk refund "refund request"'],
    "classes list": ["repcl classes list desk"],
    "classes rename": ['repcl classes rename desk refund "refund request"'],
    "classes describe": ['repcl classes describe desk complaint --description "not satisfied"'],
    "classes merge": ["repcl classes merge desk refund money_back --into refund"],
    "classes remove": ["repcl classes remove desk refund"],
    "data": ["repcl data get hwu64"],
    "data get": ["repcl data get hwu64"],
    "data check": ["repcl data check hwu64"],
}


def end_with_examples(app: typer.Typer, group: str = "") -> None:
    """Let the help of every command, and of those within groups, end with its examples."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        command.epilog = _paragraphs(f"{group} {name}".strip())
    for inner in app.registered_groups:
        if inner.typer_instance is not None and inner.name:
            inner.epilog = _paragraphs(inner.name)
            end_with_examples(inner.typer_instance, inner.name)


def _paragraphs(command: str) -> str:
    """Each line as a paragraph of its own: a help text joins lines that follow each other."""
    lines = EXAMPLES[command]
    return "\n\n".join([f"Example{'s' * (len(lines) > 1)}:", *lines])
