package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fragment is how much of a canary gives it away: what was cut or folded is
// found too.
const fragment = 12

// canaries are texts to look for, by name.
type canaries map[string]string

// plant returns the canary of a name, which is made up when it is first asked for.
func (c canaries) plant(name string) string {
	if c[name] == "" {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			panic(err)
		}
		c[name] = "k" + hex.EncodeToString(random)
	}
	return c[name]
}

// secret are the canaries that nobody may see.
func (c canaries) secret() canaries {
	hidden := maps.Clone(c)
	maps.DeleteFunc(hidden, func(name, _ string) bool { return strings.HasPrefix(name, "shown") })
	return hidden
}

// in returns the names of those that are found in a text, in whatever form.
func (c canaries) in(text []byte) []string {
	var found []string
	for name, value := range c {
		if slices.ContainsFunc(forms(value), func(form []byte) bool { return bytes.Contains(text, form) }) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// forms are what gives a canary away: its beginning and its end, as they are, in
// base64 wherever they stand in what was encoded, and in hexadecimal digits.
func forms(value string) [][]byte {
	var all [][]byte
	for _, part := range []string{value[:fragment], value[len(value)-fragment:]} {
		all = append(all, []byte(part), []byte(hex.EncodeToString([]byte(part))))
		for before := range 3 {
			// The digits at both ends depend on what stands around.
			encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + part))
			all = append(all, []byte(encoded[(before*8+5)/6:len(encoded)-1]))
		}
	}
	return all
}

// places are where canaries are looked for: contents by a name that tells where
// they come from.
type places map[string][]byte

// leaks tells of every canary in every place, with what stands around it.
func (p places) leaks(c canaries) []string {
	var told []string
	for _, where := range slices.Sorted(maps.Keys(p)) {
		for _, name := range c.in(p[where]) {
			told = append(told, fmt.Sprintf("%s in %s: …%s…", name, where, around(p[where], c[name])))
		}
	}
	return told
}

func around(text []byte, value string) string {
	for _, form := range forms(value) {
		if i := bytes.Index(text, form); i >= 0 {
			return string(text[max(0, i-200):min(len(text), i+200)])
		}
	}
	return ""
}
