// Package seal authenticates the manager's writes to places where other clients may write too, such
// as the records of releases: Secrets in the namespaces of tenants.
//
// A seal is an HMAC-SHA256, cut to 192 bits, with the number of its key before it. It fits a
// label's value. The keys lie in a Secret of the manager's own namespace.
//
// The package does not know the sealed texts, or the meaning of a missing seal.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Key is one key and its number, which counts from 1.
type Key struct {
	Number int    `json:"number"`
	Secret []byte `json:"secret"`
}

// Keys are keys in the order of their age, the newest first. The first one seals, and all of
// them verify: so a new key makes no seal invalid.
type Keys []Key

// sealBytes is the length of a seal's HMAC.
const sealBytes = 24

// For returns the keys for one purpose, which is named by texts. They cannot seal for another
// purpose.
func (k Keys) For(purpose ...string) Keys {
	derived := make(Keys, len(k))
	for i, key := range k {
		derived[i] = Key{Number: key.Number, Secret: sum(key.Secret, purpose...)}
	}
	return derived
}

// Seal returns the seal of a content. It is "" without a key.
func (k Keys) Seal(content []byte) string {
	if len(k) == 0 {
		return ""
	}
	return k[0].seal(content)
}

// Verify reports whether one of the keys has made the seal of this content.
func (k Keys) Verify(seal string, content []byte) bool {
	number, _, _ := strings.Cut(seal, ".")
	return slices.ContainsFunc(k, func(key Key) bool {
		return strconv.Itoa(key.Number) == number && hmac.Equal([]byte(key.seal(content)), []byte(seal))
	})
}

func (k Key) seal(content []byte) string {
	return strconv.Itoa(k.Number) + "." + hex.EncodeToString(sum(k.Secret, string(content))[:sealBytes])
}

// sum returns an HMAC of the texts. Each one is preceded by its length, so that no two lists of
// texts have the same bytes.
func sum(key []byte, texts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, text := range texts {
		_, _ = mac.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) // A hash takes everything.
	}
	return mac.Sum(nil)
}
