#!/bin/sh
# Makes the test-only authority and the server certificates anew, in the directory of this script.
# The authority's private key lives in a temporary directory and is thrown away, so nothing more can be signed with it.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

: > "$work/index.txt"
cat > "$work/openssl.cnf" <<CONFIG
[ca]
default_ca = authority
[authority]
database = $work/index.txt
new_certs_dir = $work
rand_serial = yes
default_md = sha256
policy = policy
unique_subject = no
[policy]
commonName = supplied
[req]
distinguished_name = name
[name]
[extensions_authority]
basicConstraints = critical, CA:true, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[extensions_server]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = \${ENV::NAMES}
[extensions_client]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
CONFIG
export NAMES=DNS:unused.test

# request <key file> <common name>: a P-256 key and a signing request for it.
request() {
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
  openssl req -new -config "$work/openssl.cnf" -key "$1" -subj "/CN=$2" -out "$work/request.pem"
}

# sign <extensions> <end date> <certificate file> [option...]: `x509 -req` of OpenSSL 3.0 cannot set dates, `ca` can.
sign() {
  extensions=$1 end=$2 certificate=$3
  shift 3
  openssl ca -batch -notext -config "$work/openssl.cnf" -extensions "$extensions" -startdate 20200101000000Z \
    -enddate "$end" -in "$work/request.pem" -out "$certificate" "$@" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

# server <file name> <end date> <subject alternative names>
server() {
  export NAMES="$3"
  request "$1-key.pem" "test-only server"
  sign extensions_server "$2" "$1.pem" -cert authority.pem -keyfile "$work/authority-key.pem"
}

# client <file name> <common name>: signed by itself (RFC 8705 section 2.2).
client() {
  request "$1-key.pem" "$2"
  sign extensions_client 21260101000000Z "$1.pem" -selfsign -keyfile "$1-key.pem"
}

request "$work/authority-key.pem" "test-only authority"
sign extensions_authority 21260101000000Z authority.pem -selfsign -keyfile "$work/authority-key.pem"

here=DNS:localhost,IP:127.0.0.1,IP:::1,DNS:provider.test
server provider 21260101000000Z "$here"
server other-host 21260101000000Z DNS:other.test
server expired 20210101000000Z "$here"
client client "test-only client"
client other-client "test-only other client"
