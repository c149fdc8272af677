"""Writes ``orders.csv``: the orders of a small furniture shop over six months, with problems to find.

Always the same file, byte for byte. What was put in on purpose:

- 24 orders stand in the table twice.
- 31 orders have no unit price.
- Revenue of the region West falls from April on, because it sells fewer desks; its other lines hold.
"""

from __future__ import annotations

import csv
import datetime
import random
from pathlib import Path

REGIONS = {"North": 1.0, "South": 0.8, "East": 1.1, "West": 1.2}
PRICES = {"Chairs": 89.0, "Desks": 340.0, "Lamps": 45.0, "Shelves": 120.0}
LOST_DESKS = {4: 0.55, 5: 0.75, 6: 0.9}  # share of West's desk orders that never came, by month
TABLE = Path(__file__).with_name("orders.csv")
FIRST_DAY = datetime.date(2026, 1, 1)
DAYS = 181
ORDERS = 1600
DUPLICATES = 24
MISSING_PRICES = 31


def orders(seed: int = 21) -> list[list[object]]:
    """The rows of the table, ordered by date."""
    random_ = random.Random(seed)
    rows: list[list[object]] = []
    for _ in range(ORDERS):
        day = FIRST_DAY + datetime.timedelta(days=random_.randrange(DAYS))
        region = random_.choices(list(REGIONS), weights=list(REGIONS.values()))[0]
        line = random_.choices(list(PRICES), weights=[4, 3, 3, 2])[0]
        if region == "West" and line == "Desks" and random_.random() < LOST_DESKS.get(day.month, 0.0):
            continue
        units = random_.randint(1, 6)
        price = round(PRICES[line] * random_.uniform(0.95, 1.05), 2)
        rows.append([day.isoformat(), region, line, units, price])
    rows.sort(key=lambda row: str(row[0]))
    rows = [[1000 + number, *row] for number, row in enumerate(rows)]
    for index in random_.sample(range(len(rows)), MISSING_PRICES):
        rows[index][-1] = ""
    rows += [list(row) for row in random_.sample([row for row in rows if row[-1] != ""], DUPLICATES)]
    rows.sort(key=lambda row: str(row[1]))
    return rows


def main(path: Path = TABLE) -> None:
    """Write the table to ``path``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["order_id", "date", "region", "line", "units", "unit_price"])
        writer.writerows(orders())


if __name__ == "__main__":
    main()
