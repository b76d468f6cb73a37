#!/usr/bin/env bash
# Tests the RPM of the server (scripts/rpm.sh) on Debian: two builds are identical, its dependencies
# are those that Enterprise Linux 9 meets, and rpm installs, verifies and removes its files in an
# empty folder. Its scripts are only parsed: there is no system in that folder. Needs root.
#
#   tests/packages/rpm.sh [PROFILE]    tests/packages/rpm.sh release
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=/dev/null
. scripts/say.sh

profile=${1:-tested}
command -v rpm >/dev/null || apt-get install -y -qq --no-install-recommends rpm >/dev/null ||
    fail "cannot find rpm" "apt-get install rpm"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
NFPM=${NFPM:-}
[ -n "$NFPM" ] || { scripts/rpm.sh "$profile" target/rpm >/dev/null && NFPM=$PWD/target/rpm/bin/nfpm; }
[ -x "$NFPM" ] || NFPM=$(command -v nfpm)
export NFPM
for number in 1 2; do
    scripts/rpm.sh "$profile" "$work/$number" >/dev/null
done
file=$(echo "$work"/1/samovar-[0-9]*.rpm)
cmp "$file" "$work/2/$(basename "$file")" || fail "two builds of $(basename "$file") differ"

requires=$(rpm -qp --requires "$file")
for expected in "glibc >= 2.34" "samovar-php = $(rpm -qp --queryformat '%{VERSION}-%{RELEASE}' "$file")" shadow-utils systemd; do
    grep -qxF "$expected" <<<"$requires" || fail "$(basename "$file") does not require \`$expected\`: $requires"
done
rpm -qp --queryformat '%{PREIN}\0%{POSTIN}\0%{PREUN}\0%{POSTUN}\0' "$file" >"$work/scripts"
while IFS= read -r -d '' script; do
    [[ -n $script && $script != "(none)" ]] || fail "$(basename "$file") has no script"
    # The lines of packages.sh are replaced.
    ! grep -q '#SERVERS#' <<<"$script" || fail "$(basename "$file"): a script is incomplete"
    sh -n <<<"$script"
done <"$work/scripts"

root=$work/root
mkdir "$root"
rpm --root "$root" --initdb
rpm --root "$root" --install --nodeps --noscripts "$file"
rpm --root "$root" --verify --nodeps samovar || fail "the installed files differ from the package"
[ "$("$root/usr/bin/samovar" --version)" = "samovar $(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)" ] ||
    fail "the installed server does not run"
grep -q '^User=samovar$' "$root/usr/lib/systemd/system/samovar.service" || fail "the service has no user samovar"
! grep -rq www-data "$root/usr/lib/systemd" "$root/etc" || fail "a file names Debian's user www-data"
echo '# changed' >>"$root/etc/samovar/samovar.toml"
rpm --root "$root" --erase --nodeps --noscripts samovar
[ -e "$root/etc/samovar/samovar.toml.rpmsave" ] || fail "the removal has lost changed settings"
[ ! -e "$root/usr/bin/samovar" ] || fail "the removal leaves files"
say "the RPM of the server passed on Debian; Enterprise Linux itself was not tested"
