//go:build long

package readcache_test

const seeds = 10
