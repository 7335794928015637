"""Messages of Kafka's protocol that kafka-python does not have, in the form that it reads.

Names, types and api keys are Kafka's (``clients/src/main/resources/common/message``), of KIP-848,
KIP-932 and KIP-1071.
"""
