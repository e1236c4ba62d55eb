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

# authority <name>: its key stays in the temporary directory.
authority() {
  request "$work/$1-key.pem" "test-only $1"
  sign extensions_authority 21260101000000Z "$1.pem" -selfsign -keyfile "$work/$1-key.pem"
}

# server <file name> <end date> <subject alternative names> <authority>
server() {
  export NAMES="$3"
  request "$1-key.pem" "test-only server"
  sign extensions_server "$2" "$1.pem" -cert "$4.pem" -keyfile "$work/$4-key.pem"
}

# client <file name> <common name>: signed by itself (RFC 8705 section 2.2).
client() {
  request "$1-key.pem" "$2"
  sign extensions_client 21260101000000Z "$1.pem" -selfsign -keyfile "$1-key.pem"
}

authority authority
authority cluster-authority

here=DNS:localhost,IP:127.0.0.1,IP:::1,DNS:provider.test
workloads=DNS:kubernetes.default.svc,DNS:token.actions.githubusercontent.com,DNS:gitlab.com
google=DNS:accounts.google.com,DNS:www.googleapis.com
server provider 21260101000000Z "$here" authority
server other-host 21260101000000Z DNS:other.test authority
server expired 20210101000000Z "$here" authority
server cluster 21260101000000Z "$here,$workloads,$google" cluster-authority
client client "test-only client"
client other-client "test-only other client"
