"""The official Python client against the stand-in: a second opinion on whether it behaves like Service Bus.

Takes the address (HOST:PORT), the name and the key of a rule that may do everything. Says "agreed" when all is as the client
expects it, and ends with an error otherwise.
"""

import sys
from uuid import uuid4

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

address, name, key, topic, mine, others, short = sys.argv[1:]
text = f"Endpoint=sb://{address};SharedAccessKeyName={name};SharedAccessKey={key};UseDevelopmentEmulator=true;"


def client(text=text):
    return ServiceBusClient.from_connection_string(text, retry_total=0)


def take(receiver, wait=10):
    taken = receiver.receive_messages(max_message_count=1, max_wait_time=wait)
    return taken[0] if taken else None


def offer(body, target, message_id=None):
    return ServiceBusMessage(body, message_id=message_id or str(uuid4()), application_properties={"targetFactoryId": target})


def refused(kind, act):
    try:
        act()
    except kind:
        return
    raise AssertionError(f"it was to be refused with {kind}")


def send(bus, to):
    with bus.get_topic_sender(to) as sender:
        sender.send_messages(offer("x", "f1"))


with client() as bus:
    with bus.get_topic_sender(topic) as sender:
        # The rule of a subscription decides, and the same message id counts once.
        for body, target, message_id in [("a", "f1", "1:1"), ("a", "f1", "1:1"), ("b", "f2", "2:1"), ("c", "f1", "3:1")]:
            sender.send_messages(offer(body, target, message_id))
        refused(ServiceBusError, lambda: sender.send_messages(offer("x" * 300_000, "f1")))
    with bus.get_subscription_receiver(topic, mine) as receiver:
        first, second = take(receiver), take(receiver)
        assert [str(first), str(second)] == ["a", "c"], (str(first), str(second))
        assert first.message_id == "1:1" and first.delivery_count == 0, first
        assert first.locked_until_utc is not None and first.lock_token is not None
        receiver.renew_message_lock(first)
        receiver.complete_message(first)
        # What is given back comes again, counted, until it was delivered too often.
        receiver.abandon_message(second)
        again = take(receiver)
        assert str(again) == "c" and again.delivery_count == 1, again
        receiver.abandon_message(again)
        assert take(receiver, wait=1) is None
    with bus.get_subscription_receiver(topic, mine, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        dead = take(receiver)
        assert str(dead) == "c" and dead.dead_letter_reason == "MaxDeliveryCountExceeded", dead
        receiver.complete_message(dead)
    with bus.get_subscription_receiver(topic, others, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        assert str(take(receiver)) == "b"
    with bus.get_topic_sender(topic) as sender:
        sender.send_messages(offer("late", "f3"))
    with bus.get_subscription_receiver(topic, short) as receiver:
        held = take(receiver)
        again = take(receiver)
        assert str(held) == str(again) == "late" and again.delivery_count >= 1
        refused(MessageLockLostError, lambda: receiver.complete_message(held))
        receiver.complete_message(again)
    refused(MessagingEntityNotFoundError, lambda: send(bus, "nothing"))

with client(text.replace(key, "d3Jvbmc=")) as bus:
    refused(ServiceBusAuthenticationError, lambda: send(bus, topic))

print("agreed")
