# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Source packages of newer Debian releases, through a private apt root in .deps/apt: signed indices,
# the machine's own sources stay as they are. To be sourced. A caller sets deps and has sourced steps.sh.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
public_mirror=http://deb.debian.org/debian

# The archives that this machine's own sources name for its release, one URL a line, then the public one.
mirrors() {
	local codename
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	{
		sed -n 's/^deb  *\(\[[^]]*\]  *\)\{0,1\}//p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
			awk -v codename="$codename" '$2 == codename && / main( |$)/ { print $1 }'
		for file in /etc/apt/sources.list.d/*.sources; do
			[[ ! -f $file ]] || sed '/^#/d; s/[[:space:]]*$//' "$file" | stanza_mirrors "$codename"
		done
		printf '%s\n' "$public_mirror"
	} | sed 's|/*$||' | awk '!seen[$0]++'
}

# stanza_mirrors CODENAME: the first URI of every stanza of a .sources file that has this suite.
stanza_mirrors() {
	awk -v codename="$1" '
		BEGIN { RS = "" ; FS = "\n" }
		{
			uri = suites = ""
			for (i = 1; i <= NF; i++) {
				if (tolower($i) ~ /^uris:/) { split(substr($i, 6), words, " "); uri = words[1] }
				if (tolower($i) ~ /^suites:/) suites = substr($i, 8) " "
			}
			if (uri && index(suites, " " codename " ")) print uri
		}'
}

# private_apt TOOL ARGUMENT...: apt-get or apt-cache on the private root.
private_apt() {
	local tool=$1
	shift
	APT_CONFIG=$deps/apt/apt.conf "$tool" -q "$@"
}

# private_sources URL: writes the private root's sources. What is taken from sid is known by its checksum, so a
# mirror that froze sid, whose index is valid for a week only, does no harm.
private_sources() {
	printf 'deb-src [%s] %s %s main\n' \
		"signed-by=$keyring" "$1" trixie \
		"signed-by=$keyring check-valid-until=no" "$1" sid >"$deps/apt/sources.list"
}

# sources_refresh: makes the private root and fetches its indices, from the public mirror if the machine's
# own do not carry these releases. Old indices do when there is no network.
sources_refresh() {
	local root=$deps/apt url
	mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
	: >"$root/status"
	cat >"$root/apt.conf" <<-END
		Dir::Etc::sourcelist "$root/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State::lists "$root/lists";
		Dir::State::status "$root/status";
		Dir::Cache "$root/cache";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
	END
	for url in $(mirrors); do
		private_sources "$url"
		private_apt apt-get update --error-on=any && return 0
	done
	echo "no mirror of trixie and sid answers: going on with what was fetched earlier, if anything"
	ls "$root"/lists/*_Sources* >/dev/null
}

# has_sha256 FILE SUM
has_sha256() {
	[[ -f $1 ]] && printf '%s  %s\n' "$2" "$1" | sha256sum --check --status
}

# sources_fetch NAME SUITE: what can be had of a source package, into .deps/src. Every file is checked against
# the signed index; missing ones are the caller's to judge, since a mirror may lack some of them.
sources_fetch() {
	local dir=$deps/tmp/fetch-$1-$2 file size sum
	rm -rf "$dir"
	mkdir -p "$dir" "$deps/src"
	cd "$dir"
	private_apt apt-get source --print-uris "$1/$2" | grep "^'" >list || return 1
	while read -r _ file size sum; do
		! has_sha256 "$deps/src/$file" "${sum#SHA256:}" || cp "$deps/src/$file" .
	done <list
	private_apt apt-get source --download-only "$1/$2" || echo "not all files of $1 in $2 could be had"
	while read -r _ file size sum; do
		if has_sha256 "$file" "${sum#SHA256:}"; then
			mv -f "$file" "$deps/src/$file"
			echo "fetched and checked: $file ($size bytes)"
		fi
	done <list
	cp list "$deps/src/$1-$2.list"
}

# sources_file NAME SUITE PATTERN: the path of a fetched file of that source package, if it is there.
sources_file() {
	local file
	file=$(awk '{ print $2 }' "$deps/src/$1-$2.list" | grep -E -- "$3" | head -n 1)
	[[ -n $file && -f $deps/src/$file ]] && printf '%s\n' "$deps/src/$file"
}

# upstream_signed FILE KEYS [FINGERPRINT]: checks upstream's signature FILE.asc against the keys (armoured or not)
# of Debian's packaging. An expired key still tells who signed. Prints signed, unsigned (nothing to check with); a
# signature that does not fit is an error.
upstream_signed() {
	local file=$1 keys=$2 fingerprint=${3:-} ring=$deps/tmp/keys-${1##*/}.gpg signer
	if [[ ! -s $keys || ! -f $file.asc ]]; then
		echo unsigned
		return 0
	fi
	if grep -q '^-----BEGIN' "$keys"; then
		sed -n '/^$/,/^[=-]/p' "$keys" | sed '/^[=-]/d' | base64 -d >"$ring"
	else
		cp "$keys" "$ring"
	fi
	signer=$(gpgv --keyring "$ring" --status-fd 1 "$file.asc" "$file" | awk '$2 == "VALIDSIG" { print $3, $NF }')
	if [[ -z $signer || (-n $fingerprint && " $signer " != *" $fingerprint "*) ]]; then
		echo "upstream's signature of ${file##*/} does not fit" >&2
		return 1
	fi
	echo signed
}

# packaging_keys DEBIAN_TAR FILE: upstream's keys as Debian's packaging has them, or an empty file.
packaging_keys() {
	tar -xOf "$1" debian/upstream/signing-key.asc >"$2" 2>/dev/null || : >"$2"
}

# sources_unpack DIR ORIG [DEBIAN_TAR]: unpacks the archive into DIR and applies Debian's patches.
sources_unpack() {
	local dir=$1 orig=$2 packaging=${3:-} name
	rm -rf "$dir"
	mkdir -p "$dir"
	tar -xf "$orig" -C "$dir" --strip-components=1
	[[ -n $packaging ]] || return 0
	rm -rf "$dir/debian"
	tar -xf "$packaging" -C "$dir"
	[[ -f $dir/debian/patches/series ]] || return 0
	sed 's/[ \t]*#.*//; /^$/d' "$dir/debian/patches/series" | while read -r name _; do
		echo "patch $name"
		patch -d "$dir" -p1 --batch <"$dir/debian/patches/$name" || return 1
	done
}
