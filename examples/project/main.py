"""Counts how many numbers below each limit are prime, and draws that."""

import chart

counts = []
for limit in range(100, 1001, 100):
    counts.append(sum(all(number % d for d in range(2, number)) for number in range(2, limit)))
    print(f"{counts[-1]} primes below {limit}")
chart.save("plot.png", counts)
