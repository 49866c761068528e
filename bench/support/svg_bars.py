"""Draw bar charts as SVG in colours that are readable on a white and on a black background."""

from xml.sax.saxutils import escape

TEXT, OURS, OTHERS = "#6e7781", "#2f81f7", "#9aa4ae"
WIDTH, LABEL, ROW, TOP = 820, 290, 26, 40


def chart(title, bars):
    """Draw one bar for each (label, value, text at the end of the bar). Bars of fairlead are coloured."""
    longest = max(value for _, value, _ in bars) or 1
    room = WIDTH - LABEL - 90
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + ROW * len(bars) + 8}" role="img"'
    lines = [
        f'<svg {box} font-family="system-ui, sans-serif" font-size="14" fill="{TEXT}">',
        f"<title>{escape(title)}</title>",
        f'<text x="0" y="20" font-size="16" font-weight="600">{escape(title)}</text>',
    ]
    for row, (label, value, end_text) in enumerate(bars):
        top, length = TOP + row * ROW, max(room * value / longest, 1.5)
        is_fairlead = label.startswith("fairlead")
        colour, weight = (OURS, ' font-weight="600"') if is_fairlead else (OTHERS, "")
        lines += [
            f'<text x="{LABEL - 10}" y="{top + 14}" text-anchor="end"{weight}>{escape(label)}</text>',
            f'<rect x="{LABEL}" y="{top}" width="{length:.1f}" height="18" rx="2" fill="{colour}"/>',
            f'<text x="{LABEL + length + 8:.1f}" y="{top + 14}"{weight}>{escape(end_text)}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"
