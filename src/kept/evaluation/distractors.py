"""Distractors: made-up documents that crowd a corpus with near misses."""

FIRST = (
    "Alder Basalt Cobalt Dorian Ember Fathom Gannet Halcyon Iris Juniper Kestrel "
    "Larch Meridian Nimbus Onyx Petrel Quartz Rowan Sable Tamarind Umber Vireo Wren"
)
SECOND = (
    "Foods Freight Glass Grid Instruments Labs Logistics Marine Metals Optics Paper "
    "Pharma Rail Software Steel Textiles Timber Tools Water"
)
MONTHS = (
    "January February March April May June July August September October November "
    "December"
)
SHAPES = (
    (
        "On {day} {month} {year}, {buyer} announced that it would acquire {target}. "
        "The price is ${price} million in cash. "
        "The companies expect to close in {later} {year}."
    ),
    (
        "{buyer} has agreed to buy {target}, it said on {day} {month} {year}. "
        "{buyer} will pay €{price} million, half of it in shares. "
        "Closing depends on regulators and may slip past {later}."
    ),
    (
        "The owners of {target} accepted the offer of {buyer} on {day} {month} {year}. "
        "The offer values {target} at £{price} million. "
        "The deal is to be completed by the end of {later}."
    ),
    (
        "{target} named a new chief executive on {day} {month} {year}. "
        "She comes from {buyer} and ran a division with ${price} million in sales. "
        "The appointment takes effect in {later}."
    ),
)


def acquisitions(count: int) -> tuple[str, ...]:
    """Make *count* short notices of other companies, always the same ones."""
    first, second, months = FIRST.split(), SECOND.split(), MONTHS.split()
    notices = []
    for i in range(count):
        month = (i * 5) % 12
        notices.append(
            SHAPES[i % len(SHAPES)].format(
                buyer=f"{first[i % 23]} {second[(i * 3) % 19]}",
                target=f"{first[(i * 7 + 5) % 23]} {second[(i * 11 + 7) % 19]}",
                day=1 + (i * 13) % 28,
                month=months[month],
                year=2015 + (i * 3) % 9,
                price=3 + (i * 37) % 900,
                later=months[(month + 2) % 12],
            )
        )
    return tuple(notices)
