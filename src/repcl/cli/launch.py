"""Commands started by `accelerate launch`: their processes make every run together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from repcl.errors import InvalidSetting, MissingPackage

if TYPE_CHECKING:
    from repcl.model import Processes
    from repcl.model.processes import Precision

# Set by accelerate's launcher and by torch's.
SIGNS = ("ACCELERATE_MIXED_PRECISION", "TORCHELASTIC_RUN_ID")
ENGINES = {
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
}


def is_launched() -> bool:
    """Whether a launcher started this process."""
    return any(sign in os.environ for sign in SIGNS)


@contextmanager
def launched() -> Iterator["Processes | None"]:
    """Join the processes that were launched together; None without a launcher."""
    if not is_launched():
        yield None
        return
    from repcl.model import Processes, best_device

    precision, chunks = wanted_precision(os.environ), wanted_chunks(os.environ)
    is_on_processors = _is_set("ACCELERATE_USE_CPU", os.environ) or best_device().type == "cpu"
    try:
        from accelerate import PartialState
    except ImportError as error:
        raise MissingPackage("Several processes need accelerate: pip install 'repcl[accelerate]'.") from error
    state = PartialState(cpu=is_on_processors)
    check_number(state.num_processes, os.environ)
    yield Processes(state.num_processes, state.process_index, state.device, precision, chunks)
    # Not after an error: others may be waiting for this process, and the launcher has to see it end.
    state.destroy_process_group()


def processes_of(context: typer.Context) -> "Processes":
    """The processes that a command was launched with, as `main` put them into its context."""
    from repcl.model import Processes

    return context.obj if isinstance(context.obj, Processes) else Processes()


def runs_at_a_time(
    processes: "Processes", *, workers: int | None, device: str | None, ray: str | None = None
) -> int:
    """How many runs are made at a time: one per core, or one by all processes launched together."""
    given = processes.device
    if given is None:
        return workers or os.cpu_count() or 1
    for option, value in (("--workers", workers if workers != 1 else None), ("--ray", ray)):
        if value is not None:
            raise InvalidSetting(
                f"Launched processes make one run together, found {option} {value}; leave it out."
            )
    if device is not None and device.partition(":")[0] != given.type:
        raise InvalidSetting(
            f"The launcher placed this process on {given}, found --device {device}; leave it out, or launch "
            "with other settings (ACCELERATE_USE_CPU=true)."
        )
    return 1


def check_number(found: int, environment: Mapping[str, str]) -> None:
    """Refuse to work alone where several processes were wanted: all would make and write the same run."""
    wanted = environment.get("WORLD_SIZE", "1")
    if found != int(wanted):
        raise InvalidSetting(
            f"Expected {wanted} processes that reach each other, found {found}: accelerate knows no way "
            "between devices of this kind; set ACCELERATE_USE_CPU=true, or launch one process."
        )
    if found == 1 and "MASTER_ADDR" in environment and _is_set("ACCELERATE_USE_CPU", environment):
        raise InvalidSetting(
            "Expected several processes, found one: `accelerate launch --cpu` starts no more; use "
            "`ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N -m repcl ...`."
        )


def wanted_precision(environment: Mapping[str, str]) -> "Precision":
    """The precision that accelerate was told; what would give wrong numbers or no effect is refused."""
    for variable, engine in ENGINES.items():
        if _is_set(variable, environment):
            raise InvalidSetting(
                f"Expected accelerate without {engine}, which splits weights that repcl keeps whole; "
                "choose plain data parallelism with `accelerate config` or --multi_gpu."
            )
    if environment.get("ACCELERATE_DYNAMO_BACKEND", "no").lower() != "no":
        raise InvalidSetting("Expected accelerate without torch.compile; use --dynamo_backend no.")
    wanted = environment.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if wanted == "no":
        return "no"
    if wanted != "bf16":
        raise InvalidSetting(
            f"Expected --mixed_precision no or bf16, found {wanted}, whose small range would need "
            "scaled losses; use bf16."
        )
    return "bf16"


def wanted_chunks(environment: Mapping[str, str]) -> int:
    """Accelerate's number of gradient accumulation steps."""
    variable = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
    wanted = environment.get(variable, "1")
    if not wanted.isdigit() or int(wanted) < 1:
        raise InvalidSetting(f"Expected a whole number above 0 in {variable}, found {wanted!r}.")
    return int(wanted)


def _is_set(variable: str, environment: Mapping[str, str]) -> bool:
    return environment.get(variable, "false").lower() in ("true", "1", "yes")
