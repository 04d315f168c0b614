"""Reads what holdpoint has signed and signs what it is to read, with securesystemslib and in-toto-attestation.

In the folder given: ours.dsse.json, ours.pub and ours.key are read; theirs-*.dsse.json and p256.pub are written.
"""

import json
import sys
from pathlib import Path

import google.protobuf.json_format as protobuf_json
import in_toto_attestation.v1.statement_pb2 as statement_pb2
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

folder = Path(sys.argv[1])
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def read_ours() -> dict:
    return json.loads((folder / "ours.dsse.json").read_text())


def verify_ours() -> bytes:
    key = SSlibKey.from_crypto(serialization.load_pem_public_key((folder / "ours.pub").read_bytes()))
    envelope = Envelope.from_dict(read_ours())
    envelope.verify([key], 1)
    edited = Envelope.from_dict(read_ours())
    edited.payload += b" "
    try:
        edited.verify([key], 1)
    except VerificationError:
        return envelope.payload
    raise SystemExit("an edited payload was verified")


def parse_statement(payload: bytes) -> Statement:
    proto = protobuf_json.ParseDict(json.loads(payload), statement_pb2.Statement())
    statement = Statement.copy_from_pb(proto)
    statement.validate()
    return statement


def sign(name: str, payload: bytes, *signers: CryptoSigner) -> None:
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    for signer in signers:
        envelope.sign(signer)
    (folder / f"theirs-{name}.dsse.json").write_text(json.dumps(envelope.to_dict()))


def main() -> None:
    payload = verify_ours()
    statement = parse_statement(payload)
    ed25519 = CryptoSigner(serialization.load_pem_private_key((folder / "ours.key").read_bytes(), None))
    private = ec.generate_private_key(ec.SECP256R1())
    p256 = CryptoSigner(private)
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "p256.pub").write_bytes(private.public_key().public_bytes(*form))
    sign("ed25519", payload, ed25519)
    sign("p256", payload, p256)
    sign("both", payload, p256, ed25519)
    sign("rewritten", protobuf_json.MessageToJson(statement.pb).encode(), ed25519)
    print(json.dumps({"keyids": [ed25519.public_key.keyid, p256.public_key.keyid], "subjects": len(statement.pb.subject)}))


main()
