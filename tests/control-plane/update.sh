#!/usr/bin/env bash
# Regenerates the Go modules beside this script for the versions named here.
# Usage: ./update.sh [KUBERNETES] [ETCD] [HELM]     for example ./update.sh 1.37.2 3.6.16 4.3.1
# A version left out stays as it is in its go.mod. Needs Go and its module proxy, nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOWORK=off

# The version that a module folder requires now.
current() { awk -v module="$2" '$1 == module && $2 ~ /^v/ {print substr($2, 2); exit}
                               $1 == "require" && $2 == module {print substr($3, 2); exit}' "$1/go.mod"; }

kubernetes=${1:-$(current kubernetes k8s.io/kubernetes)}
etcd=${2:-$(current etcd go.etcd.io/etcd/server/v3)}
helm=${3:-$(current helm helm.sh/helm/v4)}

# A fresh module: what an older version needed must not linger in go.mod or go.sum.
fresh() { mkdir -p "$1"; rm -f "$1/go.mod" "$1/go.sum"; (cd "$1" && go mod init "control-plane/$1"); }

fresh kubernetes
(
    cd kubernetes
    # k8s.io/kubernetes requires its staging modules at v0.0.0, which no proxy serves:
    # the main module has to name the published version of each one.
    staging=0.${kubernetes#1.}
    gomod=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"GoMod": *"\([^"]*\)".*/\1/p')
    for module in $(awk '$1 ~ /^k8s\.io\// && $2 == "v0.0.0" {print $1}' "$gomod" | sort -u); do
        go mod edit -replace="$module=$module@v$staging"
    done
    go get -tool "k8s.io/kubernetes/cmd/kube-apiserver@v$kubernetes" \
        "k8s.io/kubernetes/cmd/kube-controller-manager@v$kubernetes" \
        "k8s.io/kubernetes/cmd/kube-scheduler@v$kubernetes" \
        "k8s.io/kubernetes/cmd/kubectl@v$kubernetes"
)

fresh etcd
(cd etcd && go get -tool "go.etcd.io/etcd/server/v3@v$etcd")

fresh helm
(cd helm && go get -tool "helm.sh/helm/v4/cmd/helm@v$helm")
