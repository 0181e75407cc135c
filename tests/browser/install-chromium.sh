# Install Chromium for the tests of the pages, where none is found and it is allowed.
# It never fails: without a browser those tests are skipped and say what is missing.

for browser in "$KEPT_CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do
	if [ -n "$browser" ] && command -v "$browser" >/dev/null 2>&1; then
		exit 0
	fi
done

missing="the tests of the pages will be skipped: install chromium, or set KEPT_CHROMIUM"
if ! command -v apt-get >/dev/null 2>&1; then
	echo "no Chromium found and no apt-get to install it with; $missing"
	exit 0
fi
if [ "$(id -u)" = 0 ]; then
	as_root=env
elif sudo -n true 2>/dev/null; then
	as_root="sudo -n env"
else
	echo "no Chromium found and no right to install it; $missing"
	exit 0
fi

echo "installing Chromium for the tests of the pages …"
quietly="$as_root DEBIAN_FRONTEND=noninteractive apt-get -qq"
if ! { $quietly update && $quietly install --yes --no-install-recommends chromium; } >/dev/null; then
	echo "Chromium could not be installed; $missing"
fi
