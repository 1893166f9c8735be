"""How the fuzzer (fuzzing.py) changes examples: bytes, words and lines, numbers, nesting, values of JSON, the
parts of an ELF file."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

Mutate = Callable[[bytes, random.Random], bytes]

_NUMBERS = [0, 1, -1, 2, 7, 8, 255, 256, 4095, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]
_NUMBERS += [2**64, 10**30, -(2**63)]
_SPECIAL = [
    "nan", "inf", "-inf", "1e309", "1e-400", "0x10", "1_000", "+1", "٣", "²", "", " ", "\t", "\r", "\0", "é",
    "\ufeff", "\u2028", "(", ")", "[", "]", "{", "}", "'", '"', ",", ":", ";", "!", "*", "%", "&", "\\", "=",
    "@", "$", "<", ">", "&#0;", "true", "null", "#pragma omp", "#pragma homing", "!$omp", "!$homing", "\\\n",
    "&\n", "/*", "*/", "//",
]  # fmt: skip
#: The kernel's limit for one word of a command line; larger texts only take longer.
_MOST_TEXT = 128 << 10
_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9]+|\s+|.", re.DOTALL)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Bytes are changed, cut, doubled and filled in."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(out) + 1)
        width = chance.choice((1, 2, 4, 8))
        choice = chance.randrange(7)
        if choice == 0 and out:
            out[at % len(out)] = chance.randrange(256)
        elif choice == 1 and out:
            out[at % len(out)] ^= 1 << chance.randrange(8)
        elif choice == 2:
            number = chance.choice(_NUMBERS) % (1 << (8 * width))
            out[at : at + width] = number.to_bytes(width, "little")
        elif choice == 3:
            del out[at : at + chance.choice((1, 4, 64, 1024))]
        elif choice == 4:
            out[at:at] = out[at : at + chance.choice((1, 4, 64))]
        elif choice == 5:
            out[at : at + width] = bytes([chance.choice((0, 255, 128))]) * width
        elif chance.randrange(4) == 0:
            del out[at:]
    return bytes(out)


def mutate_text(data: bytes, chance: random.Random) -> bytes:
    """Words, numbers and lines are changed, dropped, doubled, moved and nested."""
    tokens = _TOKEN.findall(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if not tokens:
            tokens = [b" "]
        at = chance.randrange(len(tokens))
        choice = chance.randrange(11)
        if choice == 0:
            tokens[at] = chance.choice(_SPECIAL).encode()
        elif choice == 1:
            tokens[at] = str(chance.choice(_NUMBERS)).encode()
        elif choice == 2:
            del tokens[at : at + chance.choice((1, 1, 2, 8, 64))]
        elif choice == 3:
            tokens[at:at] = tokens[at : at + chance.choice((1, 2, 8))]
        elif choice == 4:
            tokens[at] = tokens[chance.randrange(len(tokens))]
        elif choice == 5:
            tokens.insert(at, chance.choice(_SPECIAL).encode())
        elif choice == 6:
            opening, closing = chance.choice(((b"(", b")"), (b"[", b"]"), (b"{", b"}")))
            depth = chance.choice((2, 50, 2000))
            tokens[at] = opening * depth + tokens[at] + closing * chance.choice((depth, 0))
        elif choice == 7:
            tokens[at] = (tokens[at] * chance.choice((2, 10, 5000)))[: 1 << 16]
        elif choice == 8:
            lines = b"".join(tokens).splitlines(keepends=True)
            chance.shuffle(lines[: chance.randrange(2, 6)])
            line = chance.randrange(len(lines) or 1)
            lines[line : line + 1] = chance.choice(([], lines[line : line + 1] * 2, lines[line : line + 1]))
            tokens = _TOKEN.findall(b"".join(lines))
        elif choice == 9 and chance.randrange(3) == 0:
            del tokens[at:]
        elif choice == 10:
            tokens[at] = bytes([chance.randrange(256)])
    return b"".join(tokens)[:_MOST_TEXT]


def _mutate_value(value: Any, chance: random.Random, depth: int = 0) -> Any:
    if isinstance(value, dict) and value and chance.randrange(6):
        key = chance.choice(list(value))
        changed = dict(value)
        if chance.randrange(5) == 0:
            del changed[key]
        else:
            changed[key] = _mutate_value(value[key], chance, depth + 1)
        return changed
    if isinstance(value, list) and value and chance.randrange(6):
        at = chance.randrange(len(value))
        choice = chance.randrange(4)
        if choice == 0:
            return value[:at] + value[at + 1 :]
        if choice == 1:
            return [*value, value[at]]
        return [*value[:at], _mutate_value(value[at], chance, depth + 1), *value[at + 1 :]]
    others: list[Any] = [None, True, [], {}, "", "x", [[]], {"a": 1}, 1.5, float("nan"), float("inf")]
    others += [*_NUMBERS, *_SPECIAL]
    return chance.choice(others)


def mutate_record(data: bytes, chance: random.Random) -> bytes:
    """The header's values, or bytes of the rows."""
    if chance.randrange(2):
        head = data[: 16 << 10]
        return (head if chance.randrange(8) else mutate_bytes(head, chance)) + mutate_bytes(
            data[16 << 10 :], chance
        )
    begin = data.index(b"\n") + 1
    header = json.loads(data[begin : data.index(b"\n", begin)])
    for _ in range(chance.choice((1, 1, 2, 4))):
        header = _mutate_value(header, chance)
    text = json.dumps(header).encode()
    body = data[16 << 10 :]
    return (data[:begin] + text + b"\n").ljust(16 << 10, b"\0") + body


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Values of a JSON text; sometimes its words."""
    if chance.randrange(4) == 0:
        return mutate_text(data, chance)
    value = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        value = _mutate_value(value, chance)
    return json.dumps(value).encode()


def mutate_elf(data: bytes, chance: random.Random) -> bytes:
    """Bytes within one section, a field of a section's header, or anything."""
    out = bytearray(data)
    table = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    for _ in range(chance.choice((1, 1, 2, 4))):
        entry = table + 64 * chance.randrange(count)
        choice = chance.randrange(8)
        if choice == 0:
            width = chance.choice((4, 8))
            at = entry + 8 * chance.randrange(8)
            out[at : at + width] = (chance.choice(_NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
        elif choice == 1 and chance.randrange(4) == 0:
            return mutate_bytes(bytes(out), chance)
        else:
            offset = int.from_bytes(data[entry + 24 : entry + 32], "little")
            size = int.from_bytes(data[entry + 32 : entry + 40], "little")
            if size and offset + size <= len(out):
                changed = mutate_bytes(bytes(out[offset : offset + size]), chance)[:size]
                out[offset : offset + size] = changed.ljust(size, b"\0")
    return bytes(out)


def mutate_facts(data: bytes, chance: random.Random) -> bytes:
    """Files of a system: one is dropped, or its text changed."""
    files = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        name = chance.choice(list(files))
        if chance.randrange(5) == 0 and len(files) > 1:
            del files[name]
        else:
            files[name] = mutate_text(files[name].encode("utf-8", "replace"), chance).decode(
                "utf-8", "replace"
            )
    return json.dumps(files).encode()
