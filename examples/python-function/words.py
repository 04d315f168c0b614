"""Something worth keeping fast."""

from collections import Counter


def most_common(text: str, count: int) -> list[tuple[str, int]]:
    """The most frequent words with how often they occur, ties in alphabetical order."""
    counts = Counter(text.lower().split())
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
