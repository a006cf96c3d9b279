"""Tables for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: characters of a cell
_MOST = 200


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes a table in HTML. Texts are escaped, long ones are cut.

    :param title: text above the table
    :param columns: names of the columns
    :param rows: values, one sequence by row

    >>> html_table("sizes", ["name", "bytes"], [("a<b", 3)])
    '<p><b>sizes</b></p><table><tr><th>name</th><th>bytes</th></tr><tr><td>a&lt;b</td><td>3</td></tr></table>'
    """
    from html import escape  # few processes have a notebook

    lines = [f"<p><b>{escape(title)}</b></p><table><tr>"]
    lines += [f"<th>{escape(name)}</th>" for name in columns]
    lines.append("</tr>")
    for row in rows:
        cells = "".join(f"<td>{escape(shortened(str(value), _MOST))}</td>" for value in row)
        lines.append(f"<tr>{cells}</tr>")
    return "".join([*lines, "</table>"])


def shortened(text: str, most: int) -> str:
    """A text of a number of characters at most, which ends with an ellipsis if it was cut.

    >>> shortened("a long name", 7)
    'a long…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
