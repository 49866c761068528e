"""Tests of the token bucket."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.queue.token_bucket import TokenBucket


def test_a_burst_is_allowed_at_once_and_then_the_rate():
    bucket, taken = TokenBucket(rate=2.0, burst=3), []
    for _ in range(6):
        taken.append(bucket.available_at(10.0))
        bucket.take(taken[-1])
    assert taken == [10.0, 10.0, 10.0, 10.5, 11.0, 11.5]


@given(
    st.floats(0.1, 100), st.integers(1, 10), st.lists(st.floats(0, 5, allow_subnormal=False), min_size=1, max_size=60)
)
def test_no_interval_has_more_than_the_burst_and_the_rate(rate, burst, pauses):
    bucket, now, taken = TokenBucket(rate, burst), 0.0, []
    for pause in pauses:
        now = max(now + pause, bucket.available_at(now + pause))
        bucket.take(now)
        taken.append(now)
    for first, start in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + rate * (taken[last] - start) + 1e-6
