"""Fields of a proto that a newer version of onnx defines, which this one does not know."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

#: bytes of the integers that have a fixed size, by the type protobuf writes
_SIZES = {1: 8, 5: 4}
_END_GROUP = 4


def copy_unknown_fields(proto: Message, origin: Message) -> None:
    """Adds the unknown fields of a message, not those of the messages it holds, to another one.

    :param proto: receives them
    :param origin: a message of the same type

    ::

        copy_unknown_fields(model, read_model)
    """
    found = UnknownFieldSet(origin)
    if len(found):
        proto.MergeFromString(_written(found))


def _written(fields: UnknownFieldSet) -> bytes:
    """The fields in the format of protobuf."""
    return b"".join(_field(f.field_number, f.wire_type, f.data) for f in fields)


def _field(number: int, kind: int, data: object) -> bytes:
    begin = _varint(number << 3 | kind)
    if isinstance(data, bytes):
        return begin + _varint(len(data)) + data
    if not isinstance(data, int):
        assert isinstance(data, UnknownFieldSet)
        return begin + _written(data) + _varint(number << 3 | _END_GROUP)
    return begin + (data.to_bytes(_SIZES[kind], "little") if kind in _SIZES else _varint(data))


def _varint(value: int) -> bytes:
    """An integer that is not negative, seven bits in each byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
