// Open the candidate that the address names, and focus it.

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.querySelector("summary").focus();
  }
}

addEventListener("hashchange", openNamed);
openNamed();
