"""How a result came about: decisions, files, settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from robotid_ros.identification.result import IdentificationResult
from robotid_ros.report.content import Column, Item, Table
from robotid_ros.report.numbers import number
from robotid_ros.report.wording import sentence

__all__ = ['provenance_items']


def provenance_items(result: IdentificationResult) -> Iterator[Item]:
    """Yield tables of decisions and provenance."""
    if result.decisions:
        yield Table(
            caption='What was tried and chosen',
            columns=(Column(name='Step', numeric=False), Column(name='Decision', numeric=False)),
            rows=tuple((str(k + 1), sentence(text)) for k, text in enumerate(result.decisions)),
        )
    rows = tuple(_flat(result.provenance))
    if rows:
        yield Table(
            caption='Where it came from',
            columns=(Column(name='Entry', numeric=False), Column(name='Value', numeric=False)),
            rows=rows,
            reading='Files with their hashes, settings and seed: enough to repeat it.',
        )


def _flat(content: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        name = f'{prefix}{key}'
        if isinstance(value, Mapping):
            yield from _flat(value, f'{name} · ')
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for k, item in enumerate(value):
                yield from _flat(item, f'{name} {k + 1} · ') if isinstance(item, Mapping) else [(name, str(item))]
        elif isinstance(value, list | tuple):
            yield name, ', '.join(_brief(item) for item in value[:24]) + (' …' if len(value) > 24 else '')
        else:
            yield name, _brief(value)


def _brief(value: Any) -> str:
    return number(value, 6) if isinstance(value, float) else str(value)
