// Package suggest finds the name that was most likely meant, for "did you mean …".
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Of finds the known name with the fewest slips to name: letters that are missing, too many, wrong
// or swapped. It allows one slip in names of four letters, and two in names of eight. ok is false
// if no name is that near. Names that differ in digits alone are other names.
func Of(name string, known []string) (found string, ok bool) {
	fewest := min(len(name)/4, 2)
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		if slips := distance(name, candidate, fewest); slips > 0 && slips <= fewest && withoutDigits(name) != withoutDigits(candidate) {
			found, ok, fewest = candidate, true, slips-1
		}
	}
	return found, ok
}

// Closest returns the known name that is most similar to one that is certainly wrong, "" if none
// is similar enough to be worth a question. It allows more slips than Of, whose answer is the
// only reason to doubt a name.
func Closest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range known {
		if slips := distance(strings.ToLower(name), strings.ToLower(candidate), least); slips < least {
			best, least = candidate, slips
		}
	}
	return best
}

// DidYouMean returns the words of a message about the Closest name; "" if there is none.
func DidYouMean(name string, known []string) string {
	if closest := Closest(name, known); closest != "" {
		return fmt.Sprintf("; did you mean %q?", closest)
	}
	return ""
}

// Slip returns the words of a message about the name that Of finds; "" if there is none.
func Slip(name string, known []string) string {
	if meant, ok := Of(name, known); ok {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// distance counts the slips between two names, of which no letter takes part in two. It may
// return any number above most for names that are further apart.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

func withoutDigits(name string) string {
	kept := []byte(name)
	return string(slices.DeleteFunc(kept, func(c byte) bool { return c >= '0' && c <= '9' }))
}
