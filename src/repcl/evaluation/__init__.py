"""From predictions to numbers: accuracy matrix, metrics of one run, statistics over rounds."""

from repcl.evaluation.answers import LastAnswers, TextComparison, compare_answers, last_answers
from repcl.evaluation.matrix import AccuracyMatrix
from repcl.evaluation.metrics import (
    Scores,
    accuracy_after_task,
    average_incremental_accuracy,
    backward_transfer,
    class_forgetting,
    final_accuracy,
    forgetting_rate,
    forgetting_rate_f1,
    score_predictions,
)
from repcl.evaluation.predictions import TestedExample, fraction_correct, read_predictions, write_predictions
from repcl.evaluation.statistics import (
    Comparison,
    Summary,
    holm,
    mcnemar,
    paired_comparison,
    rounds_for_power,
    summarize,
    summarize_percents,
    summarize_tasks,
)

__all__ = [
    "AccuracyMatrix",
    "Comparison",
    "LastAnswers",
    "Scores",
    "Summary",
    "TestedExample",
    "TextComparison",
    "accuracy_after_task",
    "average_incremental_accuracy",
    "backward_transfer",
    "class_forgetting",
    "compare_answers",
    "final_accuracy",
    "forgetting_rate",
    "forgetting_rate_f1",
    "fraction_correct",
    "holm",
    "last_answers",
    "mcnemar",
    "paired_comparison",
    "read_predictions",
    "rounds_for_power",
    "score_predictions",
    "summarize",
    "summarize_percents",
    "summarize_tasks",
    "write_predictions",
]
