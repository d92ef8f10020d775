"""Hostile requests, shared by test_hostile.py and soak.py: bodies nobody should send and clients that misbehave."""
import contextlib
import json
import random
import socket
import struct

from harness import HOST, VALIDATE, agent, review_text


def with_body(**members):
    return json.dumps(agent("hostile", body=members))


def nested_any_of(levels):
    """2^levels ways to go wrong for a judge without a budget."""
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"anyOf": [schema, schema]}
    return schema


def with_inline_schema(schema_text):
    return json.dumps(agent("hostile")).replace('{"type": "object"}', schema_text, 1)


# The patterns of OSSA 1.0 and of our own members, by the place that they judge.
PATTERN_PLACES = {
    "id": lambda text: {"id": text}, "name": lambda text: {"name": text}, "version": lambda text: {"version": text},
    "image": lambda text: {"runtime": {"type": "k8s", "image": text}},
    "cpu": lambda text: {"runtime": {"type": "k8s", "resources": {"cpu": text, "memory": text}}},
    "capability name": lambda text: {"capabilities": [{"name": text, "description": "x", "input_schema": {}, "output_schema": {}}]},
    "schema address": lambda text: {"capabilities": [{"name": "x", "description": "x", "input_schema": text, "output_schema": text}]},
    "base_url": lambda text: {"integration": {"endpoints": {"base_url": text, "health": text}}},
    "homepage": lambda text: {"metadata": {"homepage": text, "repository": text, "license": text}},
    "dependency": lambda text: {"dependencies": {"required": [{"agent_id": text, "min_version": text, "max_version": text}]}},
}
STRINGS = {"a": "a", "digits": "1", "dots": "1.", "dashes": "a-", "slashes": "/a", "colons": "http://a:", "escapes": "%4",
           "two bytes": "\u00e9", "four bytes": "\U0001f600", "spaces": " "}

NUMBER_SPELLINGS = ("0", "-0", "-0.0", "0e0", "30.0", "3e1", "3E+1", "300e-1", "1e400", "-1e400", "1e-400", "1e308", "9007199254740993",
                    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615",
                    "18446744073709551616", "1" * 400, "0." + "1" * 400, "1" + "0" * 5000 + "e-5000", "00", "01", "+1", ".5",
                    "1.", "1e", "1e+", "0x10", "1_000", "NaN", "Infinity", "-Infinity", "--1", "-", "1f", "\uff11")


def huge_bodies():
    """{what: (object text, whether it may be allowed)}"""
    many = [{"name": f"c-{i}", "description": "x", "input_schema": {"type": "object"}, "output_schema": {"type": "object"}}
            for i in range(10_000)]
    out = {
        "1 MB id": with_body(id="a" * 1_000_000),
        "1 MB version": with_body(version="1.0.0-" + "a" * 1_000_000),
        "10,000 capabilities": with_body(capabilities=many),
        "10,000 bad capabilities": with_body(capabilities=[{"name": f"c{i}"} for i in range(10_000)]),
        "10,000 equal capabilities": with_body(capabilities=many[:1] * 10_000),
        "a schema that is itself": with_inline_schema('{"$ref":"#"}'),
        "nested anyOf, 8,192 leaves": with_inline_schema(json.dumps(nested_any_of(13))),
        "20 anyOf in a row": with_inline_schema('{"anyOf":[' * 20 + "{}" + "]}" * 20),
        "100,000 unknown members": with_body(**{f"m{i}": i for i in range(100_000)}),
        "a catastrophic user pattern": with_inline_schema(json.dumps({"pattern": "(a+)+$" * 100, "properties": {"x": {"pattern": "(" * 500}}})),
    }
    for place, members in PATTERN_PLACES.items():
        for name, piece in STRINGS.items():
            out[f"200,000 {name} as {place}"] = with_body(**members(piece * (200_000 // len(piece))))
    return out


def broken_bodies():
    """Whole request bodies, as bytes, that are no good review."""
    good, uid = review_text(json.dumps(agent("hostile")))
    text = good.decode()
    yield "nothing", b""
    yield "7 MiB of [", b"[" * (7 << 20)
    yield "6 MiB of { in a review", review_text('{"a":' * 1_200_000)[0]
    yield "7 MiB of spaces", b" " * (7 << 20)
    yield "7 MiB of quotes", b'"' * (7 << 20)
    for at in (1, 10, len(good) // 3, len(good) // 2, len(good) - 2, len(good) - 1):
        yield f"truncated at {at}", good[:at]
    for what, raw in (("a lone continuation byte", b"\x80"), ("an overlong slash", b"\xc0\xaf"), ("half a surrogate", b"\xed\xa0\x80"),
                      ("beyond Unicode", b"\xf4\x90\x80\x80"), ("a cut sequence", b"\xe2\x82"), ("a NUL", b"\x00"),
                      ("a raw newline", b"\n"), ("\\ud800", b"\\ud800"), ("\\x", b"\\x41"), ("\\u00", b"\\u00")):
        yield f"{what} in a string", good.replace(b"Does the work", b"Does " + raw + b" work")
    yield "a byte order mark", b"\xef\xbb\xbf" + good
    yield "UTF-16", text.encode("utf-16")
    yield "two uids", text.replace(f'"uid": "{uid}"', f'"uid": "{uid}", "uid": "other"').encode()
    yield "role twice", text.replace('"role": "custom"', '"role": "custom", "role": "boss"').encode()
    yield "a second object", text[:-2].encode() + b', "object": {}}}'
    yield "two documents", good + good
    yield "text behind", good + b"x"
    yield "a comment", b"/* hi */" + good
    yield "a comma too many", good[:-1] + b",}"
    yield "other kind", text.replace("AdmissionReview", "AdmissionRevue").encode()
    yield "random", random.Random(7).randbytes(100_000)


def garbage_for_tls():
    """What comes to a TLS port that is no TLS."""
    chance = random.Random(11)
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(32)
    return [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100_000, chance.randbytes(100_000), b"\x16\x03\x01\xff\xff" + b"a" * 70_000,
            hello, hello + chance.randbytes(500), b"\x80\x2e\x01\x00\x02", b"SSH-2.0-x\r\n", b"\x15\x03\x01\x00\x02\x02\x28"]


BAD_REQUESTS = {
    "no version": b"POST /x\r\n\r\n", "HTTP/0.9": b"GET /\r\n", "HTTP/3.0": b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
    "a negative length": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".encode(),
    "a huge length": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {1 << 62}\r\n\r\n".encode(),
    "two lengths": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".encode(),
    "length and chunks": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(),
    "a bad chunk": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    "a chunk without end": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                           f"{'f' * 100}\r\n".encode(),
    "other path": b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    "other method": f"DELETE {VALIDATE} HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "other type": f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    "NULs": b"\x00" * 1000,
    "upgrade": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100),
}


def connect(port, timeout):
    return socket.create_connection((HOST, port), timeout=timeout)


def reset(connection):
    """Ends a connection by RST."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def answer_or_end(connection):
    """What the server says until it ends the connection; TimeoutError when it does neither."""
    said = b""
    while True:
        try:
            more = connection.recv(65536)
        except TimeoutError:
            if said:
                return said              # an answer, and the connection is kept
            raise
        except OSError:
            return said
        if not more:
            return said
        said += more
        if b"\r\n\r\n" in said:
            connection.settimeout(0.2)
