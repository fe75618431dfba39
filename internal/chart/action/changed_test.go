package action

import "testing"

func TestWhatIsRandomIsNoChange(t *testing.T) {
	const head = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	for why, c := range map[string]struct {
		before, once, twice string
		want                bool
	}{
		"the same":                          {head + "a}\ndata: {a: b}", head + "a}\ndata: {a: b}", head + "a}\ndata: {a: b}", true},
		"another value":                     {head + "a}\ndata: {a: b}", head + "a}\ndata: {a: c}", head + "a}\ndata: {a: c}", false},
		"a value that is random":            {head + "a}\ndata: {a: b, r: x}", head + "a}\ndata: {a: b, r: y}", head + "a}\ndata: {a: b, r: z}", true},
		"another value beside a random one": {head + "a}\ndata: {a: b, r: x}", head + "a}\ndata: {a: c, r: y}", head + "a}\ndata: {a: c, r: z}", false},
		"a new key beside a random one":     {head + "a}\ndata: {r: x}", head + "a}\ndata: {a: c, r: y}", head + "a}\ndata: {a: c, r: z}", false},
		"a random item of a list":           {head + "a}\nl: [{a: 1, r: x}]", head + "a}\nl: [{a: 1, r: y}]", head + "a}\nl: [{a: 1, r: z}]", true},
		"another item beside it":            {head + "a}\nl: [{a: 1, r: x}]", head + "a}\nl: [{a: 2, r: y}]", head + "a}\nl: [{a: 2, r: z}]", false},
		"one more object":                   {head + "a}", head + "a}\n" + head + "b}", head + "a}\n" + head + "b}", false},
		"one object less":                   {head + "a}\n" + head + "b}", head + "a}", head + "a}", false},
		"a random name":                     {head + "a-x}", head + "a-y}", head + "a-z}", true},
		"a hook":                            {head + "a}", head + "a}\n" + head + "b, annotations: {helm.sh/hook: pre-install}}", head + "a}", true},
	} {
		t.Run(why, func(t *testing.T) {
			var all [3]map[string]any
			for i, text := range []string{c.before, c.once, c.twice} {
				objects, err := objectsOf(text)
				if err != nil {
					t.Fatal(err)
				}
				all[i] = objects
			}
			if got := sameObjects(all[0], all[1], all[2]); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
