package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"sigs.k8s.io/yaml"
)

// validate prints the warnings of all validators, and returns their errors.
func validate(dir string) error {
	loaded, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return fmt.Errorf("load %s: %w", dir, err)
	}
	if err := strict(dir); err != nil {
		return err
	}
	// All validators of the library, except the one that looks at images, which are outside of the
	// bundle, and those that have a newer form here.
	validators := interfaces.Validators{
		validation.ClusterServiceVersionValidator,
		validation.CustomResourceDefinitionValidator,
		validation.BundleValidator,
		validation.OperatorHubV2Validator,
		validation.StandardCategoriesValidator,
		validation.StandardCapabilitiesValidator,
		validation.ObjectValidator,
		validation.OperatorGroupValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator,
	}
	var found []error
	for _, result := range validators.Validate(loaded.ObjectsToValidate()...) {
		for _, warning := range result.Warnings {
			fmt.Fprintf(os.Stderr, "bundle: warning: %s: %s\n", result.Name, warning.Error())
		}
		for _, fault := range result.Errors {
			found = append(found, fmt.Errorf("%s: %s: %w", dir, result.Name, fault))
		}
	}
	return errors.Join(found...)
}

// strict returns the fields of the ClusterServiceVersion that it does not have. The library ignores them.
func strict(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "manifests", "clusterserviceversion.*.yaml"))
	if err != nil || len(found) != 1 {
		return errors.Join(fmt.Errorf("%s: want one file of a ClusterServiceVersion, got %d", dir, len(found)), err)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = yaml.UnmarshalStrict(text, &v1alpha1.ClusterServiceVersion{})
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", found[0], err)
	}
	return nil
}
