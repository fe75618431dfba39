package values

import (
	"strconv"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	secrets := map[string]any{
		"password": "hunter2-and-more", "pin": "42", "port": int64(33060), "short": "ab", "quoted": `a"b'c\d`, "dash": "-",
		"pem": "-----BEGIN KEY-----\n  abcdefghij\nklmnopqrst\n-----END KEY-----\n", "list": []any{map[string]any{"deep": "verysecret"}}, "on": true, "none": nil, "empty": "",
		"odd": "a b&c/d=e", "long": "the-first-half-of-a-long-value:and-the-second-half-of-it", "over": "and-more-of-it",
	}
	for why, test := range map[string]struct{ text, want string }{
		"nothing of them":               {"install failed: no matches for kind", "install failed: no matches for kind"},
		"a value in a word":             {"jdbc:mysql://root:hunter2-and-more@db:33060/x", "jdbc:mysql://root:(redacted)@db:(redacted)/x"},
		"a short one as a word alone":   {`Invalid value: "42": must be in 142..420; cab, ab`, `Invalid value: "(redacted)": must be in 142..420; cab, (redacted)`},
		"two that share a space":        {"42 42 42", "(redacted) (redacted) (redacted)"},
		"a number":                      {"maximum: got 33060, want 1024", "maximum: got (redacted), want 1024"},
		"a text in Go's quotes":         {`got "a\"b'c\\d"`, `got "(redacted)"`},
		"a text in a schema's quotes":   {`'a"b\'c\\d' does not match pattern '^a$'`, `'(redacted)' does not match pattern '^a$'`},
		"in base64":                     {"data: aHVudGVyMi1hbmQtbW9yZQ== is", "data: (redacted) is"},
		"in an address":                 {"http://db?a=a+b%26c%2Fd%3De", "http://db?a=(redacted)"},
		"lines of a longer text":        {"at abcdefghij\n and klmnopqrst", "at (redacted)\n and (redacted)"},
		"what YAML quotes of it":        {"cannot unmarshal !!str `hunter2...` into int", "cannot unmarshal !!str `(redacted)` into int"},
		"a text that is cut within it":  {"bad password hunter2-an", "bad password (redacted)"},
		"a text that begins within it":  {"and-more is bad", "(redacted) is bad"},
		"deep in lists":                 {"verysecret", "(redacted)"},
		"truth values are no secrets":   {"true - false", "true - false"},
		"what stands between stays":     {"(42)", "((redacted))"},
		"a value that stands in itself": {"hunter2-and-morehunter2-and-more", "(redacted)(redacted)"},
		"values that overlap":           {"x hunter2-and-more-of-it y", "x (redacted) y"},
		"a long one":                    {"got the-first-half-of-a-long-value:and-the-second-half-of-it.", "got (redacted)."},
		"the middle of a long one":      {"got -first-half-of-a-long-value:and-the-second-half- and", "got (redacted) and"},
		"the begin of a long one":       {"got the-first-half", "got (redacted)"},
		"the end of a long one":         {"second-half-of-it: bad", "(redacted): bad"},
		"two long ones":                 {strings.Repeat("the-first-half-of-a-long-value:and-the-second-half-of-it", 2), "(redacted)(redacted)"},
		"less of a long one":            {"got the-first-half of it", "got the-first-half of it"},
		"words of other scripts":        {"é42 42é 42", "é42 42é (redacted)"},
	} {
		t.Run(why, func(t *testing.T) {
			if got := NewMask(secrets).Text(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	var none *Mask
	if got := none.Text("as it is"); got != "as it is" {
		t.Errorf("without secrets: got %q", got)
	}
}

// A message may have one line of a text, as it is, indented, quoted or cut.
func TestEachLineOfASecretIsHidden(t *testing.T) {
	const (
		key    = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyjiWA4R4/M2bSGG\n-----END PRIVATE KEY-----\n"
		config = "database:\r\n  user: \"admin\"\r\n  password: 'hunter2 and more'\r\n"
	)
	for why, object := range map[string]From{
		"a key at a path": from(key, "tls", "key"), "YAML at a path": from(config, "config"), "YAML of values": from("config: |\n  " + strings.ReplaceAll(config, "\r\n", "\n  ")),
		"YAML that is no mapping": from(key + config),
	} {
		mask, text := NewMask(object.Shown()), config
		if strings.HasPrefix(why, "a key") {
			text = key
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			for _, message := range []string{line, "at <" + line + ">", "  \t" + line + "\n", "got " + strconv.Quote(line), "got " + line[:len(line)*3/4]} {
				if shown := mask.Text(message); !strings.Contains(shown, redacted) || strings.Contains(shown, line) {
					t.Errorf("%s: %q shows %q", why, message, shown)
				}
			}
		}
	}
}

// A tenant may write a Secret with many lines; each text that is hidden must stay cheap.
func TestAMaskThatIsTooLargeShowsNothing(t *testing.T) {
	var lines strings.Builder
	for i := range 30_000 {
		lines.WriteString(strings.Repeat("x", 5+i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i%11) + "\n")
		lines.WriteString(strings.Repeat("z", i%40) + string(rune(0x4e00+i%20000)) + "abc\n")
	}
	if got := NewMask(map[string]any{"a": lines.String()}).Text("a message"); got != hiddenAll {
		t.Errorf("got %q", got)
	}
}

// Whatever a tenant writes into a Secret and makes a chart repeat, the time for it is to grow with its length.
func BenchmarkMask(b *testing.B) {
	for name, text := range map[string]func(n int) string{
		"one byte":    func(n int) string { return strings.Repeat("a", n) },
		"a word":      func(n int) string { return strings.Repeat("abcdefgh", n/8) },
		"short lines": func(n int) string { return strings.Repeat("abcd\nab\n", n/8) },
		"alike lines": func(n int) string {
			var lines strings.Builder
			for i := range 2_000 {
				lines.WriteString(strings.Repeat("a", n/2_000) + strconv.Itoa(i) + "\n")
			}
			return lines.String()
		},
	} {
		for _, size := range []int{60_000, 600_000} {
			b.Run(name+"/"+strconv.Itoa(size), func(b *testing.B) {
				secret := text(size)
				for b.Loop() {
					NewMask(map[string]any{"a": secret, "b": "42"}).Text("a " + secret + "b " + secret[1:])
				}
			})
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("the value is hunter2-and-more.", "hunter2-and-more")
	f.Add("a 42", "42")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := NewMask(map[string]any{"a": secret}).Text(text + " " + secret + " " + text)
		secret = strings.TrimSpace(secret)
		if len([]rune(secret)) >= minLong && !strings.Contains(redacted, secret) && !strings.Contains(hiddenAll, secret) && strings.Contains(strings.ReplaceAll(got, redacted, "\x00"), secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}
