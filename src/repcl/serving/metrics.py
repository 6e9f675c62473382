"""What Prometheus asks for: counts of requests, texts, turns and jobs; no text or label is ever in them."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts since the service was started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, list[int]] = {}
        self._seconds_sum: Counter[str] = Counter()
        self._turns = 0
        self._texts = 0

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered.

        Args:
            method: of HTTP.
            route: as it was declared, without what a user filled in.
            status: of the answer.
            seconds: from its first byte to its last.
        """
        with self._lock:
            self._requests[method, route, status] += 1
            buckets = self._seconds.setdefault(route, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds_sum[route] += seconds  # type: ignore[assignment]

    def count_turn(self, texts: int) -> None:
        """So many texts were answered together."""
        with self._lock:
            self._turns += 1
            self._texts += texts

    def page(self, gauges: Mapping[str, tuple[str, float]], jobs: Mapping[str, int]) -> str:
        """All of it in Prometheus' text format.

        Args:
            gauges: by name, what it means and its value.
            jobs: how many there are of each state.
        """
        with self._lock:
            lines = [
                *_family("repcl_requests_total", "counter", "Requests answered."),
                *(
                    f'repcl_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                    for (method, route, status), count in sorted(self._requests.items())
                ),
                *_family("repcl_request_seconds", "histogram", "Time that requests took."),
                *(line for route in sorted(self._seconds) for line in self._histogram(route)),
                *_family("repcl_texts_total", "counter", "Texts answered."),
                f"repcl_texts_total {self._texts}",
                *_family("repcl_turns_total", "counter", "Times that texts were answered together."),
                f"repcl_turns_total {self._turns}",
            ]
        lines += _family("repcl_jobs", "gauge", "Jobs by state.")
        lines += [f'repcl_jobs{{state="{state}"}} {count}' for state, count in sorted(jobs.items())]
        for name, (meaning, value) in gauges.items():
            lines += [*_family(name, "gauge", meaning), f"{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str) -> list[str]:
        lines, total = [], 0
        for bound, count in zip([*map(str, BUCKETS), "+Inf"], self._seconds[route], strict=True):
            total += count
            lines.append(f'repcl_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
        return [
            *lines,
            f'repcl_request_seconds_sum{{route="{route}"}} {self._seconds_sum[route]:.6f}',
            f'repcl_request_seconds_count{{route="{route}"}} {total}',
        ]


def _family(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
