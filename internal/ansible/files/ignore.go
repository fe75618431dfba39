package files

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Ignored returns a function that reports whether git ignores an entry below dir, by the .gitignore
// files there and above, up to the repository's directory. Without a repository, those above do not count.
func Ignored(dir string) func(path string, isDir bool) bool {
	top := dir
	for above := dir; ; above = filepath.Dir(above) {
		if _, err := os.Lstat(filepath.Join(above, ".git")); err == nil {
			top = above
			break
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	rules := map[string][]rule{} // by directory
	return func(entry string, isDir bool) bool {
		relative, err := filepath.Rel(top, entry)
		if err != nil || !filepath.IsLocal(relative) {
			return false
		}
		ignored, at := false, top
		for parts := strings.Split(relative, "/"); len(parts) > 0; parts = parts[1:] {
			if _, read := rules[at]; !read {
				rules[at] = readRules(filepath.Join(at, ".gitignore"))
			}
			for _, r := range rules[at] { // The last that matches decides, and those below go before those above.
				if (isDir || !r.dirOnly) && r.pattern.MatchString(strings.Join(parts, "/")) {
					ignored = !r.negated
				}
			}
			at = filepath.Join(at, parts[0])
		}
		return ignored
	}
}

// rule is a line of a .gitignore.
type rule struct {
	pattern          *regexp.Regexp
	negated, dirOnly bool
}

func readRules(file string) []rule {
	text, err := os.ReadFile(file)
	if err != nil || len(text) > maxReadBytes {
		return nil
	}
	var rules []rule
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var r rule
		line, r.negated = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		if !strings.Contains(line, "/") {
			line = "**/" + line // A name in any directory.
		}
		if r.pattern, err = regexp.Compile(expression(strings.TrimPrefix(line, "/"))); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// wildcard matches the parts with a meaning in a pattern of git.
var wildcard = regexp.MustCompile(`\*\*/|/\*\*$|\*|\?|\[!?[^]]+\]|\\.|[^*?\[\\/]+|.`)

// expression returns a regular expression for a pattern of git.
func expression(pattern string) string {
	return "^" + wildcard.ReplaceAllStringFunc(pattern, func(part string) string {
		switch {
		case part == "**/":
			return "(?:.*/)?"
		case part == "/**":
			return "/.*"
		case part[0] == '*':
			return "[^/]*"
		case part == "?":
			return "[^/]"
		case part[0] == '[' && len(part) > 1:
			return strings.Replace(part, "[!", "[^", 1)
		case part[0] == '\\' && len(part) > 1:
			return regexp.QuoteMeta(part[1:])
		}
		return regexp.QuoteMeta(part)
	}) + "$"
}
