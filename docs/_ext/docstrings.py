"""Docstrings as they are written here, to reStructuredText: indented equations stay as they are, bars are bars."""

from typing import Any

from sphinx.application import Sphinx

SECTIONS = ('Attributes', 'Parameters', 'Returns', 'Raises', 'Yields', 'Notes', 'References', 'Examples', 'See Also')


def convert(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Mark indented paragraphs of running text as literal blocks, and escape bars outside of them."""
    result: list[str] = []
    free_text, literal = True, False
    for k, line in enumerate(lines):
        following = lines[k + 1] if k + 1 < len(lines) else ''
        if line.strip() in SECTIONS and following.startswith('---'):
            free_text = line.strip() in ('Notes', 'Examples')
        indented = line.startswith('    ')
        if literal and line.strip() and not indented:
            literal = False
        begins = free_text and indented and not literal and k > 0 and not lines[k - 1].strip()
        if begins:
            before = next((text for text in reversed(result) if text.strip()), '')
            if not before.endswith('::'):
                result += ['::', '']
            literal = True
        result.append(line if literal else line.replace('|', '\\|'))
    lines[:] = result


def setup(app: Sphinx) -> dict[str, Any]:
    """Convert before numpydoc does."""
    app.connect('autodoc-process-docstring', convert, priority=100)
    return {'parallel_read_safe': True, 'version': '1'}
