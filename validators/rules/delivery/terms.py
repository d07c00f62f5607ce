"""Rules whose violations the reading of service levels finds, so that each is a page alone."""

from dq.validators.rule import delivery_rule

RULES = (
    delivery_rule(
        "calendar-invalid",
        """Delivery calendar with unknown holidays or contradictions.

        Why: dq could not tell which deliveries are due.

        Bad:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {calendar: {holidays: [DE-XX]}}

        Good:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {calendar: {holidays: [DE-BY]}}

        How to fix: Write ISO 3166 codes of a country or subdivision, e.g. DE or DE-BY, and each date in
        only one list.
        """,
    ),
    delivery_rule(
        "delivery-server-invalid",
        """Delivery that names an unknown server, or one twice.

        Why: dq could not tell on which servers the data must arrive.

        Bad:
            servers:
              - {server: eu, type: s3, location: s3://lake-eu, format: parquet}
              - {server: us, type: s3, location: s3://lake-us, format: parquet}
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {servers: [eu, asia]}

        Good:
            servers:
              - {server: eu, type: s3, location: s3://lake-eu, format: parquet}
              - {server: us, type: s3, location: s3://lake-us, format: parquet}
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {servers: [eu, us]}

        How to fix: Write names of the contract's servers, each once.
        """,
    ),
    delivery_rule(
        "duration-invalid",
        """Invalid duration in a delivery.

        Why: Without a valid duration, dq cannot tell when the delivery is late.

        Bad:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {grace: 1 hour}

        Good:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {timezone: Europe/Berlin, grace: 1h}

        How to fix: Write a whole number and a unit: 45m, 2h, 3d, 1w; or ISO 8601, e.g. PT45M.
        """,
    ),
    delivery_rule(
        "false-warnings-invalid",
        """Invalid budget of false early warnings.

        Why: Without a budget, dq could not tell how early it may warn.

        Bad:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {grace: 1h, warn: usual, falseWarnings: rarely}

        Good:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {grace: 1h, warn: usual, falseWarnings: 1/quarter}

        How to fix: Write a whole number and week, month, quarter or year, e.g. 1/quarter, next to `warn:
        usual`.
        """,
    ),
    delivery_rule(
        "objective-invalid",
        """Invalid delivery objective.

        Why: The error budget is calculated from the objective.

        Bad:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {objective: most}

        Good:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {objective: 95%}

        How to fix: Write a percentage above 0 and up to 100, e.g. 95%.
        """,
    ),
    delivery_rule(
        "partition-template-invalid",
        """Invalid partition template of a delivery.

        Why: Without a valid partition, the watcher would look for data where it never is.

        Bad:
            schema:
              - name: orders
                properties:
                  - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {partition: {day: "{due - 1 day:%Y-%m-%d}"}}

        Good:
            schema:
              - name: orders
                properties:
                  - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {partition: {day: "{due - 1d:%Y-%m-%d}"}}

        How to fix: Write `{due:%Y-%m-%d}`, or with calendar arithmetic `{due - 1d:%Y-%m-%d}`; units are m h
        d w mo y.
        """,
    ),
    delivery_rule(
        "unknown-timezone",
        """Unknown time zone in a delivery.

        Why: A due time of 06:00 is only defined together with a time zone.

        Bad:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {timezone: Europe/Berln}

        Good:
            slaProperties:
              - id: daily
                property: frequency
                value: 1
                unit: d
                element: orders
                schedule: "0 6 * * *"
                customProperties:
                  - property: delivery
                    vendor: dq
                    value: {timezone: Europe/Berlin, grace: 1h}

        How to fix: Write a name of the IANA time zone database, e.g. Europe/Berlin. Fixed abbreviations,
        e.g. EST, are rejected because they do not follow DST.
        """,
    ),
)
