#!/usr/bin/env bash
# Tests the Helm chart without a cluster: helm lint, kubeconform with the schemas of several
# versions of Kubernetes, and the checks of tests/chart/rendered.py.
#
#   scripts/chart-test.sh [FOLDER]    scripts/chart-test.sh target/chart
#
# FOLDER receives helm and kubeconform, built from their Go modules unless they are on PATH (some
# minutes), and the schemas of the Python package kubernetes-validate.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

folder=$(realpath -m "${1:-target/chart}")
chart=deploy/helm/samovar
mkdir -p "$folder/bin"
export PATH=$PATH:$folder/bin

# program NAME MODULE: builds it if it is missing.
program() {
    command -v "$1" >/dev/null && return
    command -v go >/dev/null || fail "cannot find $1, nor go to build it" "install $1, or Go"
    say "building $1"
    GOFLAGS=-mod=mod GOBIN=$folder/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "$2"
}
program helm helm.sh/helm/v3/cmd/helm@v3.22.0
program kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
if [ ! -x "$folder/python/bin/pip" ]; then
    /usr/bin/python3 -c 'import ensurepip' 2>/dev/null ||
        apt-get install -y -qq --no-install-recommends python3-venv >/dev/null ||
        fail "python3 cannot create an environment" "apt-get install python3-venv"
    /usr/bin/python3 -m venv "$folder/python"
fi
"$folder/python/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0 pyyaml
versions=(1.27.0 1.30.0 1.34.0 1.37.0)
"$folder/python/bin/python" tests/chart/schemas.py "$folder/schemas" "${versions[@]}"

# Words in double braces are kubeconform's.
location="$folder/schemas/{{ .NormalizedKubernetesVersion }}/{{ .ResourceKind }}{{ .KindSuffix }}.json"
for values in "$chart/values.yaml" "$chart"/ci/*-values.yaml; do
    for version in "${versions[@]}"; do
        helm lint --strict --quiet --kube-version "$version" --values "$values" "$chart"
        helm template shop "$chart" --namespace shop --kube-version "$version" \
            --values "$values" >"$folder/rendered.yaml"
        # Kubernetes has no schema for the Prometheus operator's resource; rendered.py checks it.
        kubeconform -strict -summary -kubernetes-version "$version" -schema-location "$location" \
            -skip ServiceMonitor "$folder/rendered.yaml" ||
            fail "$values: not valid for Kubernetes $version"
    done
done
PYTHONDONTWRITEBYTECODE=1 "$folder/python/bin/python" tests/chart/rendered.py "$chart"
say "the chart is valid"
