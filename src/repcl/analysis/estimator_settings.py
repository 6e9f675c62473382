"""How mutual information is estimated: one protocol for every method, and that of the authors' code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from repcl.errors import InvalidSetting, shortened

Partners = Literal["shifted", "drawn"]
Count = Annotated[int, Field(ge=1, le=10**9)]


@dataclass(frozen=True)
class EstimatorSettings:
    """The knobs of an estimate.

    Attributes:
        critics: fits with other first weights and other halves; the value is their median.
        steps: of a fit, at most.
        patience: a fit ends when so many steps did not raise the bound on a fifth of its half, which it does
            not train on; the value is read off where that was highest. None: all steps, last value.
        hidden: layers of the critic.
        learning_rate: of Adam.
        moving_average: rate at which the gradient's denominator follows; 1 gives the biased gradient.
        batch_size: pairs of a step.
        is_held_out: fit on one half and read off the other, then the other way round; else both on all.
        partners: how independent pairs are made.
        look_every: steps between two points of the fitting curve.
    """

    critics: Count = 5
    steps: Count = 5000
    patience: Count | None = 500
    hidden: Annotated[tuple[Count, ...], Field(min_length=1)] = (256, 256)
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-4
    moving_average: Annotated[float, Field(gt=0, le=1)] = 0.01
    batch_size: Annotated[int, Field(ge=2, le=10**9)] = 256
    is_held_out: bool = True
    partners: Partners = "shifted"
    look_every: Count = 25


AUTHORS = EstimatorSettings(
    critics=1,
    patience=None,
    hidden=(40,),
    moving_average=1.0,
    is_held_out=False,
    partners="drawn",
)
"""What the authors' released code does: judged by the texts it was fitted on, so it over-estimates."""

_CHECKED: TypeAdapter[EstimatorSettings] = TypeAdapter(EstimatorSettings)


def make_estimator(values: Mapping[str, Any]) -> EstimatorSettings:
    """Checked settings; errors name the setting, the value and what was expected."""
    try:
        return _CHECKED.validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InvalidSetting(
            f"Setting {name} = {shortened(values[name])} of the analysis cannot be used: "
            f"{first['msg'].lower()}."
        ) from error
