package usermetrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ensign-operator/ensign/internal/observe/usermetrics"
)

// endpoint returns an endpoint that serves, and the registry that shows its metrics.
func endpoint(t *testing.T, allow func(*http.Request) bool) (string, *prometheus.Registry) {
	t.Helper()
	shown := prometheus.NewPedanticRegistry()
	e, err := usermetrics.New(usermetrics.NewRegistry(shown), usermetrics.Options{Address: "127.0.0.1:0", Allow: allow, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Server().Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e.URL(), shown
}

func post(t *testing.T, url, body string) (code int, said string) {
	t.Helper()
	return send(t, http.MethodPost, url, body)
}

func send(t *testing.T, method, url, body string, header ...string) (code int, said string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode, string(text)
}

// shows returns the lines of the metrics without comments.
func shows(t *testing.T, shown *prometheus.Registry) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(shown, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("the metrics can't be read: %s", recorder.Body)
	}
	var lines strings.Builder
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func TestPosts(t *testing.T) {
	for name, test := range map[string]struct {
		posts []string
		want  string
	}{
		"a counter grows by one":                          {[]string{`{"counter": {"increment": true}}`}, "m 1\n"},
		"and by any number, both in one post too":         {[]string{`{"counter": {"increment": true, "add": 2.5}}`, `{"counter": {"add": 1}}`}, "m 4.5\n"},
		"a counter can begin with nothing":                {[]string{`{"counter": {}}`}, "m 0\n"},
		"false is no increment":                           {[]string{`{"counter": {"increment": false, "add": null}}`}, "m 0\n"},
		"null kinds and members count as absent":          {[]string{`{"counter": null, "gauge": {"set": 3, "add": null, "increment": null}, "histogram": null, "summary": null}`}, "m 3\n"},
		"a gauge can be set to 0":                         {[]string{`{"gauge": {"set": 3}}`, `{"gauge": {"set": 0}}`}, "m 0\n"},
		"a gauge goes up and down":                        {[]string{`{"gauge": {"add": 3}}`, `{"gauge": {"subtract": 1}}`, `{"gauge": {"sub": 4}}`, `{"gauge": {"decrement": true}}`}, "m -3\n"},
		"a gauge is set after it was added to":            {[]string{`{"gauge": {"set": 7, "add": 100, "increment": true, "subtract": 5}}`}, "m 7\n"},
		"increment, decrement and the rest add up":        {[]string{`{"gauge": {"subtract": 5, "add": 100, "decrement": true, "increment": true}}`}, "m 95\n"},
		"a histogram counts and sums":                     {[]string{`{"histogram": {"observe": 2}}`, `{"histogram": {"observe": 0.5}}`}, "m_sum 2.5\nm_count 2\n"},
		"a summary too":                                   {[]string{`{"summary": {"observe": -2}}`, `{"summary": {"observe": 0}}`}, "m_sum -2\nm_count 2\n"},
		"nothing to observe is 0":                         {[]string{`{"histogram": {}}`, `{"histogram": {"observe": null}}`, `{"histogram": {"observe": 3}}`}, "m_sum 3\nm_count 3\n"},
		"for a summary too":                               {[]string{`{"summary": {}}`, `{"summary": {"observe": null}}`}, "m_sum 0\nm_count 2\n"},
		"members that are no kinds are ignored":           {[]string{`{"state": "present", "gauge": {"set": 1}}`}, "m 1\n"},
		"a description may change, the first one remains": {[]string{`{"gauge": {"set": 1}}`, `{"description": "y", "gauge": {"set": 2}}`}, "m 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			url, shown := endpoint(t, nil)
			for _, body := range test.posts {
				if code, said := post(t, url, strings.Replace(body, "{", `{"name": "m", "description": "d", `, 1)); code != http.StatusOK {
					t.Errorf("%s: %d %s", body, code, said)
				}
			}
			if diff := cmp.Diff(test.want, shows(t, shown)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheCurrentTimeIsTheLastWord(t *testing.T) {
	url, shown := endpoint(t, nil)
	post(t, url, `{"name": "m", "gauge": {"set_to_current_time": true, "set": 1}}`)
	if got := shows(t, shown); !strings.HasPrefix(got, "m 1.") || !strings.HasSuffix(got, "e+09\n") {
		t.Errorf("want seconds since 1970, got %s", got)
	}
}

func TestRefusedPostsChangeNothing(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"no kind":                                  {`{"name": "m", "description": "d"}`, "exactly one"},
		"only null kinds":                          {`{"name": "m", "counter": null, "gauge": null}`, "exactly one"},
		"two kinds":                                {`{"name": "m", "counter": {"add": 1}, "gauge": {"set": 1}}`, "counter, gauge"},
		"a counter that would become less":         {`{"name": "m", "counter": {"increment": true, "add": -1}}`, "-1"},
		"a known counter that would become less":   {`{"name": "known", "counter": {"increment": true, "add": -1}}`, "-1"},
		"another kind for a known metric":          {`{"name": "known", "gauge": {"set": 5}}`, "is a counter and can't become a gauge"},
		"a summary that was a histogram":           {`{"name": "times", "summary": {"observe": 5}}`, "is a histogram"},
		"what is observed is text":                 {`{"name": "m", "histogram": {"observe": "1"}}`, `observe is string, and has to be a number`},
		"a member of a kind that is not known":     {`{"name": "m", "gauge": {"sett": 1}}`, "sett"},
		"a number that is text":                    {`{"name": "m", "gauge": {"set": "1"}}`, `set is string, and has to be a number`},
		"a truth that is a number":                 {`{"name": "m", "gauge": {"increment": 1}}`, "true or false"},
		"a name that is a number":                  {`{"name": 1, "gauge": {"set": 1}}`, `name is number, and has to be a string`},
		"a number that is none":                    {`{"name": "m", "gauge": {"set": NaN}}`, "JSON"},
		"a number beyond all":                      {`{"name": "m", "gauge": {"set": 1e999}}`, "1e999"},
		"a kind that is a list":                    {`{"name": "m", "gauge": [1]}`, "gauge: it is array, and has to be an object"},
		"no name":                                  {`{"gauge": {"set": 1}}`, "name is missing"},
		"a name that is null":                      {`{"name": null, "gauge": {"set": 1}}`, "name is missing"},
		"a name that begins with a digit":          {`{"name": "1m", "gauge": {"set": 1}}`, "allowed are"},
		"a name with a line feed":                  {`{"name": "m\nx 1", "gauge": {"set": 1}}`, "allowed are"},
		"a name with what few can query":           {`{"name": "größe", "gauge": {"set": 1}}`, "allowed are"},
		"a name that is too long":                  {`{"name": "` + strings.Repeat("m", 201) + `", "gauge": {"set": 1}}`, "200"},
		"a description that is too long":           {`{"name": "m", "description": "` + strings.Repeat("d", 4097) + `", "gauge": {"set": 1}}`, "4096"},
		"a name of the manager's":                  {`{"name": "ansible_operator_live_runs", "gauge": {"set": 1}}`, "the manager"},
		"a name that the manager may use once":     {`{"name": "ansible_operator_x", "gauge": {"set": 1}}`, "the manager"},
		"a name that controller-runtime has":       {`{"name": "workqueue_depth", "gauge": {"set": 1}}`, "the manager"},
		"a name that is registered by others":      {`{"name": "taken", "gauge": {"set": 1}}`, "taken"},
		"a name that a histogram shows":            {`{"name": "times_count", "counter": {"increment": true}}`, `"times"`},
		"a histogram that would show another name": {`{"name": "other", "histogram": {"observe": 1}}`, `"other_sum"`},
		"no JSON":     {`name=m`, "JSON"},
		"a list":      {`[]`, "JSON"},
		"nothing":     {``, "JSON"},
		"two objects": {`{"name": "m", "gauge": {"set": 1}} {}`, "goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			url, shown := endpoint(t, nil)
			shown.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "taken", Help: "Of somebody else."}))
			for _, body := range []string{`{"name": "known", "counter": {"add": 3}}`, `{"name": "times", "histogram": {"observe": 1}}`, `{"name": "other_sum", "gauge": {"set": 1}}`} {
				if code, said := post(t, url, body); code != http.StatusOK {
					t.Fatal(code, said)
				}
			}
			before := shows(t, shown)
			code, said := post(t, url, test.body)
			if code != http.StatusBadRequest || !strings.Contains(said, test.want) {
				t.Errorf("want 400 with %q, got %d %s", test.want, code, said)
			}
			if diff := cmp.Diff(before, shows(t, shown)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoMayPost(t *testing.T) {
	holder := func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer live" }
	const body = `{"name": "m", "gauge": {"set": 1}}`
	for name, test := range map[string]struct {
		allow        func(*http.Request) bool
		method, path string
		header       []string
		want         int
	}{
		"an open endpoint takes all": {nil, http.MethodPost, "", nil, http.StatusOK},
		"also with a token":          {nil, http.MethodPost, "", []string{"Authorization", "Bearer x"}, http.StatusOK},
		"a live run's token":         {holder, http.MethodPost, "", []string{"Authorization", "Bearer live"}, http.StatusOK},
		"no token":                   {holder, http.MethodPost, "", nil, http.StatusUnauthorized},
		"a wrong token":              {holder, http.MethodPost, "", []string{"Authorization", "Bearer dead"}, http.StatusUnauthorized},
		"a page in a browser":        {nil, http.MethodPost, "", []string{"Origin", "http://example.com"}, http.StatusForbidden},
		"nothing is read here":       {nil, http.MethodGet, "", nil, http.StatusMethodNotAllowed},
		"and nothing is elsewhere":   {nil, http.MethodPost, "/x", nil, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			url, shown := endpoint(t, test.allow)
			if code, said := send(t, test.method, url+test.path, body, test.header...); code != test.want {
				t.Errorf("want %d, got %d %s", test.want, code, said)
			}
			if got := shows(t, shown); (got != "") != (test.want == http.StatusOK) {
				t.Errorf("shows %q", got)
			}
		})
	}
}

func TestALongBodyIsNotRead(t *testing.T) {
	url, shown := endpoint(t, nil)
	body := `{"name": "m", "description": "` + strings.Repeat("d", 100<<10) + `", "gauge": {"set": 1}}`
	if code, said := post(t, url, body); code != http.StatusRequestEntityTooLarge {
		t.Errorf("want 413, got %d %s", code, said)
	}
	if got := shows(t, shown); got != "" {
		t.Errorf("shows %q", got)
	}
}

func TestMetricsAreBoundedInNumber(t *testing.T) {
	url, shown := endpoint(t, nil)
	for i := range 1000 {
		if code, said := post(t, url, fmt.Sprintf(`{"name": "m%d", "gauge": {"set": 1}}`, i)); code != http.StatusOK {
			t.Fatalf("metric %d: %d %s", i, code, said)
		}
	}
	if code, said := post(t, url, `{"name": "more", "gauge": {"set": 1}}`); code != http.StatusBadRequest || !strings.Contains(said, "1000") {
		t.Errorf("want 400 with the limit, got %d %s", code, said)
	}
	if code, said := post(t, url, `{"name": "m0", "gauge": {"set": 2}}`); code != http.StatusOK {
		t.Errorf("a metric that is there takes posts: got %d %s", code, said)
	}
	if lines := strings.Count(shows(t, shown), "\n"); lines != 1000 {
		t.Errorf("got %d metrics", lines)
	}
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	url, _ := endpoint(t, nil)
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	if _, err := usermetrics.New(usermetrics.NewRegistry(prometheus.NewRegistry()), usermetrics.Options{Address: address}); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("want an error with the address, got %v", err)
	}
}
