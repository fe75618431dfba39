package extravars

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestSnakeCaseAgreesWithTheRecordedNames(t *testing.T) {
	file, err := os.Open("testdata/snake_case.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		in, out, _ := strings.Cut(lines.Text(), "\t")
		var key, want string
		if err := json.Unmarshal([]byte(in), &key); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if err := json.Unmarshal([]byte(out), &want); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if got, err := SnakeCase(key); err != nil || got != want {
			t.Errorf("SnakeCase(%q) = %q, %v; want %q", key, got, err, want)
		}
	}
	if count != 6068 {
		t.Errorf("read %d names, want all 6068", count)
	}
}

// These names are promised to authors of roles. The recorded names above may be
// generated again; these must not change.
func TestPromisedSnakeCaseNames(t *testing.T) {
	for key, want := range map[string]string{
		"mysqlAdminSecret": "mysql_admin_secret", "size": "size", "var_var": "var_var",
		"k8s_var": "k8s_var", "_k8s_var": "_k8s_var", "k8s var": "k8s_var",
		"sizeK8sBuckets": "size_k8s_buckets", "size_k8s_test": "size_k8s_test",
		"podCIDR": "pod_cidr", "my-label": "my_label", "JSONData": "_json_data",
		"egressIPs": "egress_ips", "egressIP": "egress_ip", "egressIPsEgress": "egress_ips_egress",
		"IPsegress": "_ips_egress", "clusterIP": "cluster_ip", "hostURL": "host_url",
		"apiURLPath": "api_url_path", "k8sVersion": "k8s_version", "x509Cert": "x509_cert",
		"888": "888", "aB": "ab", "egressIPsegress": "egress_ips_egress",
		"egressIPEgress": "egress_ip_egress", "egressIPegress": "egress_ip_egress",
		"URLegressIPEgressHTTP":     "url_egress_ip_egress_http",
		"URLsegressIPsEgressHTTPs":  "_urls_egress_ips_egress_https",
		"_CanYou_Handle_mixedVars":  "_can_you_handle_mixed_vars",
		"ThisShouldHaveUnderscores": "_this_should_have_underscores",
		"this_should_be_a_noop":     "this_should_be_a_noop",
		"s3Bucket":                  "s3_bucket",
		"app.kubernetes.io/name":    "app.kubernetes.io/name",
		"enableHTTPS":               "enable_http_s",
		"VIPAddress":                "_v_ip_address",
		"URL":                       "__url",
	} {
		if got, err := SnakeCase(key); err != nil || got != want {
			t.Errorf("SnakeCase(%q) = %q, %v; want %q", key, got, err, want)
		}
	}
}

func TestSnakeCaseOfUnusualKeys(t *testing.T) {
	for why, test := range map[string]struct {
		key, want string
		wantErr   error
	}{
		"no key at all has no name":                    {key: "", wantErr: errBlankKey},
		"blanks alone have no name":                    {key: "   ", wantErr: errBlankKey},
		"broken UTF-8 would change on its way":         {key: "a\xff", wantErr: errKeyUTF8},
		"a dash alone is a name":                       {key: "-", want: "_"},
		"letters that are not ASCII stay and go lower": {key: "größeÄ", want: "größeä"},
		"an astral character is one character":         {key: "a😀B", want: "a😀b"},
		"a NUL is a character like any other":          {key: "a\x00b", want: "a\x00b"},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := SnakeCase(test.key)
			if got != test.want || !errors.Is(err, test.wantErr) {
				t.Errorf("SnakeCase(%q) = %q, %v; want %q, %v", test.key, got, err, test.want, test.wantErr)
			}
		})
	}
}
