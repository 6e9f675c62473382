"""Runs, searches for settings, analyses of runs, and their reports."""

from repcl.experiments.runs.observers import RunObserver
from repcl.experiments.runs.result import Result, read_result
from repcl.experiments.runs.run import run_experiment
from repcl.experiments.runs.spec import RunOptions, RunPlan, RunSpec, plan_run
from repcl.experiments.runs.store import RunStore, StoredRun

__all__ = [
    "Result",
    "RunObserver",
    "RunOptions",
    "RunPlan",
    "RunSpec",
    "RunStore",
    "StoredRun",
    "plan_run",
    "read_result",
    "run_experiment",
]
