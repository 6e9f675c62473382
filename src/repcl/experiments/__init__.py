"""Runs, grids of runs, their results and reports."""

from repcl.experiments.observer import RunObserver
from repcl.experiments.plan import RunPlan, plan_run
from repcl.experiments.report import write_report
from repcl.experiments.result import Result, find_results, read_result
from repcl.experiments.run import run_experiment
from repcl.experiments.verify import Verification, verify_results

__all__ = [
    "Result",
    "RunObserver",
    "RunPlan",
    "Verification",
    "find_results",
    "plan_run",
    "read_result",
    "run_experiment",
    "verify_results",
    "write_report",
]
