//go:build !long

package readcache_test

// seeds is how many worlds `make test` has time for.
const seeds = 3
