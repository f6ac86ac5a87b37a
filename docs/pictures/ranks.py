# SPDX-License-Identifier: Apache-2.0
"""Draws what crosses between ranks: the steps of an exchange, and tokens that go to experts."""

from svg import AMBER, BLUE, GREEN, GREY, ROSE, TEAL, arrow, drawing, line, rect, text

WIDTH = 760

# The steps of each rank: (name, where it begins, where it ends, colour).
STEPS = (
    (("announce", 70, 150, BLUE), ("judge", 250, 310, GREY), ("pull rows", 316, 470, TEAL), ("credit", 476, 540, AMBER)),
    (("announce", 130, 210, BLUE), ("judge", 216, 276, GREY), ("pull rows", 282, 470, TEAL), ("credit", 476, 540, AMBER)),
)
LANES = (70, 190)  # where the ranks begin, from above
LANE_HEIGHT = 46
NEXT = (600, 690)  # the step that waits for credits


def lane(rank):
    """Draws the steps of a rank, from left to right."""
    top = LANES[rank]
    parts = [text(0, top + 28, f"rank {rank}", 13, font_weight="bold")]
    for name, begin, end, colour in (*STEPS[rank], ("next call", *NEXT, BLUE)):
        parts += [
            rect(begin, top, end - begin, LANE_HEIGHT, colour, fill_opacity=0.3, rx=4),
            text((begin + end) / 2, top + 28, name, 12, "middle"),
        ]
    return parts


def crossing(begin, end, source, **style):
    """Draws an arrow from a rank to the other one."""
    low, high = LANES[0] + LANE_HEIGHT, LANES[1]
    return arrow(begin, low if source == 0 else high, end, high if source == 0 else low, **style)


def exchange(name):
    """Draws an exchange of two ranks over time."""
    rows = {"stroke": TEAL, "stroke_dasharray": "5 4"}
    parts = [text(0, 24, "An exchange between two ranks", 14, font_weight="bold"), *lane(0), *lane(1)]
    parts += [
        crossing(150, 214, 0),
        crossing(210, 248, 1),
        crossing(340, 380, 1, **rows),
        crossing(400, 440, 0, **rows),
        crossing(540, 598, 0, stroke=AMBER),
        crossing(540, 598, 1, stroke=AMBER),
        text(70, 268, "1. Each rank announces to all how many rows it sends to each, and how many it has room for."),
        text(70, 288, "2. All ranks judge the same announcements, and come to the same verdict."),
        text(70, 308, "3. Each pulls the rows that are for it (dashed: the way of the rows)."),
        text(70, 328, "4. It gives its credit: others may overwrite what it has pulled. Only the next call waits for that."),
        text(WIDTH - 24, 60, "time", 11, "end", opacity=0.8),
        arrow(WIDTH - 90, 56, WIDTH - 58, 56, opacity=0.6),
    ]
    return drawing(name, WIDTH, 344, "The steps of an exchange between two ranks", parts)


# The tokens of each rank with their experts. Experts 0 and 1 are those of rank 0.
TOKENS = ((("A", (0, 2)), ("B", (2, 3)), ("C", (0, 1))), (("D", (1, 3)), ("E", (0, 1)), ("F", (2, 3))))
COLOURS = dict(zip("ABCDEF", (TEAL, AMBER, BLUE, ROSE, GREEN, GREY)))
ROW, GAP, RANK_TOP = 24, 5, (78, 262)
TOKEN_LEFT, EXPERT_LEFT, SUM_LEFT = 40, 350, 640
TOKEN_WIDTH, EXPERT_WIDTH = 80, 80


def row(left, top, letter, words, width=TOKEN_WIDTH):
    """Draws a row of a token."""
    return [
        rect(left, top, width, ROW - 4, COLOURS[letter], fill_opacity=0.4, rx=3),
        text(left + width / 2, top + 15, words, 11, "middle"),
    ]


def token_top(rank, place):
    return RANK_TOP[rank] + 26 + place * (ROW + GAP)


def expert_rows():
    """Returns where each (expert, letter) lies: in the order of experts, then of tokens."""
    places = {}
    for rank in range(2):
        top = RANK_TOP[rank]
        for expert in (2 * rank, 2 * rank + 1):
            letters = [letter for tokens in TOKENS for letter, experts in tokens if expert in experts]
            for i, letter in enumerate(letters):
                places[expert, letter] = top + i * ROW
            top += len(letters) * ROW + 8
    return places


def tokens_and_sums(places):
    """Draws the tokens and their results, and an arrow for each rank that has experts of them."""
    parts = []
    for rank, tokens in enumerate(TOKENS):
        for place, (letter, experts) in enumerate(tokens):
            top = token_top(rank, place)
            parts += row(TOKEN_LEFT, top, letter, f"{letter}: {experts[0]} and {experts[1]}")
            parts += row(SUM_LEFT, top, letter, letter)
            for home in range(2):
                there = [places[expert, letter] for expert in experts if expert // 2 == home]
                if not there:
                    continue
                style = {"stroke": COLOURS[letter], "opacity": 1.0 if home != rank else 0.35}
                parts.append(arrow(TOKEN_LEFT + TOKEN_WIDTH + 3, top + 10, EXPERT_LEFT - 4, there[0] + 10, **style))
                begin = EXPERT_LEFT + EXPERT_WIDTH + 3
                parts.append(arrow(begin, there[-1] + 10, SUM_LEFT - 4, top + 10, **style))
    return parts


def dispatch(name):
    """Draws tokens that go to the experts of two ranks, and sums that come home."""
    places = expert_rows()
    parts = [
        text(TOKEN_LEFT, 24, "Tokens and their experts", 14, font_weight="bold"),
        text(EXPERT_LEFT, 24, "Rows by expert", 14, font_weight="bold"),
        text(SUM_LEFT, 24, "Results", 14, font_weight="bold"),
        text((TOKEN_LEFT + TOKEN_WIDTH + EXPERT_LEFT) / 2, 44, "dispatch", 12, "middle"),
        text((EXPERT_LEFT + EXPERT_WIDTH + SUM_LEFT) / 2, 44, "combine", 12, "middle"),
        line(0, 238, WIDTH, 238, opacity=0.3, stroke_dasharray="4 4"),
    ]
    for rank in range(2):
        parts.append(text(0, RANK_TOP[rank] - 4, f"rank {rank}", 13, font_weight="bold"))
    for (expert, letter), top in places.items():
        parts += row(EXPERT_LEFT, top, letter, f"{expert}: {letter}", EXPERT_WIDTH)
    parts += tokens_and_sums(places)
    parts += [
        text(TOKEN_LEFT, 440, "B and E have two experts at the other rank, and cross once: the row lands at both places."),
        text(TOKEN_LEFT, 460, "Each rank adds up what its experts made of a token, and sends one row home. Pale arrows stay on a GPU."),
    ]
    return drawing(name, WIDTH, 474, "Tokens cross to their experts once for each rank, and sums come home", parts)


RANKS = {"exchange.svg": exchange, "dispatch.svg": dispatch}
