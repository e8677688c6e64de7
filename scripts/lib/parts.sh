# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The libraries that are built here, each a part: fetched, built aside, moved into place when whole. A part is
# named by a hash of its recipe, so that a change of a flag builds that part again and nothing else.
# To be sourced. A caller sets: deps; has sourced steps.sh and sources.sh.

parts=(wolfssl liburing cares)

common_cflags='-g -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -Wp,-D_FORTIFY_SOURCE=2'

# wolfSSL: sid's archive (it has the X25519MLKEM768 hybrid), known by its checksum, else trixie's with its patches.
wolfssl_version=5.9.2
wolfssl_sha256=2f4ef3d4fd387a9b3191d36a6316d69116c46ff69bb9583b6c82b36d7b8ca114
wolfssl_signer=A2A48E7BCB96C5BECB987314EBC80E415CA29677
wolfssl_flags=(
	--enable-static --disable-shared --with-pic
	--disable-examples --disable-crypttests --disable-benchmark
	--enable-singlethreaded
	# TLS 1.2 is switched off at run time; nothing older is compiled in.
	--enable-tls13 --enable-tlsv12 --disable-oldtls
	--enable-alpn --enable-sni --enable-crl --enable-altcertchains --enable-keying-material
	# No resumption: saves memory per session, and records after the handshake.
	--disable-session-ticket
	--enable-ecc --enable-curve25519 --enable-hkdf --enable-aesgcm --enable-chacha --enable-poly1305
	--enable-certgen --enable-certreq --enable-certext
	# The library asks us to sign, so that a private key stays in our locked pages and never in its heap.
	--enable-pkcallbacks
	# AEAD with ECDHE only; roots come from the control plane, never from the machine.
	--disable-dh --disable-aescbc --disable-pkcs12 --disable-sys-ca-certs
	--enable-sp=yes,asm --enable-sp-asm
)
# ALT_NAMES: SAN in what we sign. ALWAYS_VERIFY_CB: the callback sees good chains too (SPIFFE check).
# SECRET_CALLBACK: the seam for an own record layer. GETRANDOM: no /dev/urandom in a silo's sandbox.
wolfssl_defines='-DWOLFSSL_ALT_NAMES -DWOLFSSL_ALWAYS_VERIFY_CB -DHAVE_SECRET_CALLBACK -DNO_SESSION_CACHE -DWOLFSSL_GETRANDOM'

# liburing: Debian 12's is too old; sid's archive by its checksum, else trixie's.
liburing_version=2.15
liburing_sha256=efd299ff27cde40a45efc7dbb97ebe40a0c461921cb462f1d62611642bb4ee86

# The flags that bring in the processor's own instructions.
wolfssl_assembly() {
	case $(uname -m) in
	x86_64) echo --enable-intelasm ;;
	aarch64) echo --enable-armasm ;;
	*) echo "no assembly for $(uname -m): TLS will be slow" >&2 ;;
	esac
}

# The flags of every part; no path of this machine gets into the debug information.
part_cflags() {
	printf '%s' "$common_cflags -ffile-prefix-map=$deps/tmp=."
}

# pinned_orig NAME VERSION SHA256: the path of the archive with that checksum: an earlier download, or sid's.
pinned_orig() {
	local orig=$deps/src/$1_$2.orig.tar.gz
	if ! has_sha256 "$orig" "$3"; then
		(sources_fetch "$1" sid >&2) || return 1
		has_sha256 "$orig" "$3" || return 1
	fi
	printf '%s\n' "$orig"
}

# part_source NAME [VERSION SHA256 [SIGNER]]: unpacks a part's source into its build folder and writes the line
# "name version origin signature" to the file that tells what was built. With a checksum: that archive of sid,
# if it can be had; otherwise, or without: trixie's version with Debian's patches.
part_source() {
	local name=$1 version=${2:-} sha256=${3:-} signer=${4:-} dir=$deps/tmp/$1 keys=$deps/tmp/keys-$1 orig='' packaging='' signed origin
	[[ -f $deps/src/$name-trixie.list ]] && packaging=$(sources_file "$name" trixie '\.debian\.tar\.[a-z0-9]+$') || packaging=
	if [[ -n $sha256 ]] && orig=$(pinned_orig "$name" "$version" "$sha256"); then
		origin="sid, sha256 $sha256"
		if [[ -z $packaging ]] && (sources_fetch "$name" trixie >&2); then
			packaging=$(sources_file "$name" trixie '\.debian\.tar\.[a-z0-9]+$') || packaging=
		fi
		: >"$keys"
		[[ -z $packaging ]] || packaging_keys "$packaging" "$keys"
		signed=$(upstream_signed "$orig" "$keys" "$signer")
		sources_unpack "$dir" "$orig"
	else
		(sources_fetch "$name" trixie >&2)
		if ! orig=$(sources_file "$name" trixie '\.orig\.tar\.[a-z0-9]+$') ||
			! packaging=$(sources_file "$name" trixie '\.debian\.tar\.[a-z0-9]+$'); then
			echo "no whole source of $name could be had"
			return 1
		fi
		version=${packaging##*/}
		version=${version#*_}
		version=${version%.debian.tar.*}
		origin="trixie, with Debian's patches${sha256:+; ${2:-} of sid was not to be had}"
		packaging_keys "$packaging" "$keys"
		signed=$(upstream_signed "$orig" "$keys" "$signer")
		sources_unpack "$dir" "$orig" "$packaging"
	fi
	printf '%s %s (%s; upstream: %s)\n' "$name" "$version" "$origin" "$signed" >"$deps/tmp/$name.version"
}

# part_finish NAME STAGE: what no static build needs is dropped; pkg-config files find the prefix by their own place.
part_finish() {
	local name=$1 stage=$2
	rm -rf "$stage"/lib/*.la "$stage"/lib/*.so* "$stage/lib/cmake" "$stage/bin" "$stage/share"
	# shellcheck disable=SC2016 # pkg-config's variable
	sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^exec_prefix=.*|exec_prefix=${prefix}|' \
		-e 's|^libdir=.*|libdir=${prefix}/lib|' -e 's|^includedir=.*|includedir=${prefix}/include|' "$stage"/lib/pkgconfig/*.pc
	mkdir -p "$stage/share/culvert-deps"
	cp "$deps/tmp/$name.version" "$stage/share/culvert-deps/$name"
}

part_wolfssl() {
	local stage=$1
	part_source wolfssl "$wolfssl_version" "$wolfssl_sha256" "$wolfssl_signer"
	cd "$deps/tmp/wolfssl"
	autoreconf -fi
	# shellcheck disable=SC2046 # one flag or none
	./configure --prefix="$stage" --libdir="$stage/lib" "${wolfssl_flags[@]}" $(wolfssl_assembly) \
		CFLAGS="-O3 $(part_cflags) $wolfssl_defines"
	make -j"$(nproc)"
	make install
}

part_liburing() {
	local stage=$1
	part_source liburing "$liburing_version" "$liburing_sha256"
	cd "$deps/tmp/liburing"
	./configure --prefix="$stage" --libdir="$stage/lib" --libdevdir="$stage/lib" --includedir="$stage/include" --mandir="$stage/share/man"
	make -C src -j"$(nproc)" CFLAGS="-O2 $(part_cflags)"
	make install CFLAGS="-O2 $(part_cflags)"
	rm -f "$stage"/lib/liburing-ffi.* "$stage"/lib/pkgconfig/liburing-ffi.pc
}

# c-ares: for its record API (Debian 12's is older); only messages are used, so no threads, tools or tests.
part_cares() {
	local stage=$1
	part_source c-ares
	mv "$deps/tmp/c-ares.version" "$deps/tmp/cares.version"
	cd "$deps/tmp/c-ares"
	./configure --prefix="$stage" --libdir="$stage/lib" --enable-static --disable-shared --with-pic --disable-tests \
		--disable-cares-threads CFLAGS="-O2 $(part_cflags)"
	make -C include install
	make -C src/lib -j"$(nproc)" install
	make install-pkgconfigDATA
}

# part_dir NAME: where the finished part is, or will be; the name changes with the recipe.
part_dir() {
	local hash
	hash=$({
		uname -m
		declare -f "part_$1" part_source part_finish sources_unpack wolfssl_assembly
		printf '%s\n' "$common_cflags"
		case $1 in
		wolfssl) printf '%s\n' "$wolfssl_version" "$wolfssl_sha256" "${wolfssl_flags[@]}" "$wolfssl_defines" ;;
		liburing) printf '%s\n' "$liburing_version" "$liburing_sha256" ;;
		esac
	} | sha256sum)
	printf '%s\n' "$deps/parts/$1-${hash:0:16}"
}

# Names of the parts that are not built, one a line.
parts_missing() {
	local name
	for name in "${parts[@]}"; do
		[[ -d $(part_dir "$name") ]] || printf '%s\n' "$name"
	done
}

# part_build NAME: builds a part aside and moves it into place.
part_build() {
	local name=$1 stage=$deps/tmp/stage-$1
	rm -rf "$stage"
	"part_$name" "$stage"
	part_finish "$name" "$stage"
	mkdir -p "$deps/parts"
	mv -T "$stage" "$(part_dir "$name")"
}

# prefix_tree: the folder that .deps/prefix should point to; named by all parts together.
prefix_tree() {
	local name hash
	hash=$(for name in "${parts[@]}"; do part_dir "$name"; done | sha256sum)
	printf '%s\n' "$deps/prefixes/${hash:0:16}"
}

# True if .deps/prefix is the union of the parts that the recipes name.
prefix_current() {
	[[ -L $deps/prefix && -d $deps/prefix/ && $(readlink "$deps/prefix") == "prefixes/$(basename "$(prefix_tree)")" ]]
}

# prefix_join: makes the union of all parts, points .deps/prefix to it in one move and drops what is no longer used.
prefix_join() {
	local tree name old
	tree=$(prefix_tree)
	rm -rf "$deps/tmp/prefix" "$tree"
	mkdir -p "$deps/tmp/prefix" "$deps/prefixes"
	for name in "${parts[@]}"; do
		cp -a "$(part_dir "$name")/." "$deps/tmp/prefix/"
	done
	(cd "$deps/tmp/prefix/share/culvert-deps" && cat "${parts[@]}" >versions)
	mv -T "$deps/tmp/prefix" "$tree"
	ln -sfn "prefixes/${tree##*/}" "$deps/tmp/link"
	[[ -L $deps/prefix || ! -e $deps/prefix ]] || mv -T "$deps/prefix" "$deps/tmp/old-prefix"
	mv -fT "$deps/tmp/link" "$deps/prefix"
	for old in "$deps"/prefixes/*; do
		[[ $old == "$tree" ]] || rm -rf "$old"
	done
	for old in "$deps"/parts/*; do
		for name in "${parts[@]}"; do
			[[ $old != "$(part_dir "$name")" ]] || continue 2
		done
		rm -rf "$old"
	done
}
