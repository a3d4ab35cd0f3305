"""The targets: mechanisms right and wrong, written exactly as a user writes a mechanism, a family a file."""

#: The names of the targets by module.
NAMES = {
    "noise_addition": """
        laplace_mechanism histogram histogram_wrong_scale laplace_parallel prefix_sum geometric_mechanism
        truncated_geometric snapping_mechanism
    """,
    "gaussian_noise": """
        gaussian_mechanism gaussian_wrong_sigma analytic_gaussian discrete_gaussian truncated_laplace
        gaussian_composition dp_sgd_step dp_sgd_step_true_batch_size
    """,
    "sparse_vector": """
        svt isvt1 isvt2 isvt3 isvt4 svt_single_noise svt_resampled svt_numeric_and_flags numerical_svt
    """,
    "selection": """
        noisy_max_laplace noisy_max_exponential noisy_max_laplace_value noisy_max_exponential_value
        exponential_mechanism exponential_mechanism_half_scale
    """,
    "randomized_response": """
        randomized_response generalized_randomized_response optimal_unary_encoding rappor one_time_rappor
    """,
    "threshold_testing": "gptt gptt_lee_clifton gptt_chen gptt_stoddard",
    "table_builder": """
        bounded_noisy_counts keyed_noisy_counts entropic_noisy_counts growing_noisy_counts layered_noisy_counts
    """,
    "subset_sum": "bounded_subset_sums binomial_subset_sums",
    "rare_leaks": """
        rarely_without_noise rarely_less_noise rarely_truthful histogram_rarely_exact far_tail_without_noise
    """,
    "curator_attack": "laplace_flat_ends laplace_flat_ends_low_density svt_uniform_threshold",
    "slips": """
        sum_of_signed sum_of_signed_half_sensitivity count_and_sum count_and_sum_full_budget_each
        answers_composed answers_root_composed two_answers two_answers_same_noise counts_above_zero
        counts_above_zero_of_raw answer_if_large answer_if_raw_large sampled_sum unsampled_sum clipped_sum
        clipped_sum_above_only one_sided_noise
    """,
}
#: The place of each target, as `module:function`, by its name; its module is imported once the target is used.
TARGETS = {name: f"dpwitness.algorithms.{module}:{name}" for module, names in NAMES.items() for name in names.split()}
TARGETS["subset_sum_reconstruction"] = "dpwitness.reconstruction.subset_sum.mechanism:subset_sum_reconstruction"
