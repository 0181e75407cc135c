# Install a Debian package that some tests use, where its command is missing and
# installing is allowed:   sh tests/install-package.sh PACKAGE TESTS COMMAND...
# It never fails: without the command those tests are skipped and say what is missing.
package=$1 tests=$2
shift 2

for command in "$@"; do
	if [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; then
		exit 0
	fi
done

missing="$tests will be skipped: install $package"
if ! command -v apt-get >/dev/null 2>&1; then
	echo "no $package found and no apt-get to install it with; $missing"
	exit 0
fi
if [ "$(id -u)" = 0 ]; then
	as_root=env
elif sudo -n true 2>/dev/null; then
	as_root="sudo -n env"
else
	echo "no $package found and no right to install it; $missing"
	exit 0
fi

echo "installing $package for $tests …"
quietly="$as_root DEBIAN_FRONTEND=noninteractive apt-get -qq"
if ! { $quietly update && $quietly install --yes --no-install-recommends "$package"; } >/dev/null; then
	echo "$package could not be installed; $missing"
fi
