# SPDX-License-Identifier: Apache-2.0
"""Every constant of the models, in the order of the pipeline.

Each group names the benchmark that its numbers must pass again after a change, or their source. Penalties and scores
are in units of twice the log-likelihood; complexity is that of hypotheses.library.make_term.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Penalties:
    """Penalties that the likelihood must outweigh.

    For each coefficient, each point of complexity of terms, each negative coefficient, each parameter with an effect
    (among many functions of a parameter, one follows the noise), and each order of growth.
    """

    coefficient: float
    complexity: float
    negative: float = 0.0
    parameter: float = 0.0
    growth: float = 0.0


# --- complexity of terms: benchmarks/modeling_accuracy.py (noisy values), tests/modeling/pmnf/test_effort.py (counts)
# Exponents that loops and trees produce (whole numbers, log) are simpler than halves and thirds (areas and edges of
# blocks), and these simpler than the rest.
DENOMINATOR_COMPLEXITY = {1: 0.0, 2: 1.0, 3: 1.0}
OTHER_DENOMINATOR_COMPLEXITY = 5.0
# Exponents of recursions, log2(3) and log2(7), are only tried if a size doubles and no other function reproduces the
# counts.
RECURSION_COMPLEXITY = 1.0
# log2(x) and x·log2(x) are simpler than other products with one logarithm, and log2²(x) than other squares of it.
LOG_COMPLEXITY, LOG_PRODUCT_COMPLEXITY = 0.25, 0.75
SQUARED_LOG_COMPLEXITY, SQUARED_LOG_PRODUCT_COMPLEXITY = 1.0, 2.0
# Negative exponents (one more point for each logarithm), and each unit of whole exponents above 1.
NEGATIVE_COMPLEXITY, POWER_COMPLEXITY = 0.5, 0.1

# --- data: benchmarks/modeling_accuracy.py; the last four from double precision
# Repetitions further from their median than this many robust deviations do not enter the mean.
OUTLIER = 4.0
# Standard deviation of the prior of the exponent with which the variance of a value changes with the value; the
# relative variance of a sum of independent events is proportional to 1/value. benchmarks/effort_sums.py
SCATTER_SLOPE = 1.0
# More lines than this add little information about one parameter.
MOST_LINES = 9
# Weights from a model differ from weights from the values by at most this factor.
WEIGHT_RATIO = 2.0
# Variances between configurations must exceed those by noise by this number of standard deviations.
SIGNIFICANT_VARIATION = 2.0
# Noise below the first number is ignored; scatter of repetitions above the second number causes a note.
LOUD_NOISE, LARGE_SCATTER = 0.05, 0.5
# Values of call paths are scaled if the magnitude of their logarithm to base 2 exceeds this, so that squares stay
# finite.
EXTREME_EXPONENT = 300
# Measured values beyond this count as infinite, and those below its inverse as 0.
LARGEST_VALUE = 1e250
# Powers of parameter values beyond this are not finite.
LARGEST_PARAMETER = 1e30
# Whole numbers up to this are exact.
WHOLE_UP_TO = 2.0**53

# --- counts that are exact: tests/modeling/pmnf/test_effort.py, benchmarks/priors_evaluation.py
EXACT = Penalties(coefficient=10.0, complexity=1.0, negative=15.0)
# Residuals up to this part of the variation of the values, and of the values, are rounding.
EXACT_RESIDUAL, EXACT_RESIDUAL_OF_SIZE = 1e-9, 2e-13
# Unweighted residuals, relative to the largest value, above which weighted residuals are not rounding.
NEARLY_EXACT = 1e-8
EXACT_LINES = 6
# Weights of counts are relative to the value, but to at least this part of the largest value; more if squares of
# weights rank sets.
EXACT_LEAST_WEIGHED, RANKED_LEAST_WEIGHED = 1e-4, 1e-2
# Sets are not fitted precisely if their squares exceed this part of the squares of the values.
EXACT_NEAR = 1e-6
# Relative precision of values that are no whole numbers.
EXACT_RESOLUTION = 1e-9
# Coefficients of loops are whole if they are this close to whole numbers, relative for larger numbers.
WHOLE, WHOLE_OF_SIZE = 1e-6, 1e-3
# Coefficients of exact models lose the digits that rounding leaves of whole numbers.
WHOLE_COEFFICIENT = 1e-7
# Terms up to this complexity take part in sums of two and of three.
EXACT_PAIR_COMPLEXITY, EXACT_TRIPLE_COMPLEXITY = 1.5, 1.0
# Of products whose parts are below the first number in all values, the largest are left out if the rest reproduces the
# counts to this multiple of the residuals of all products, or to the last number, which is rounding.
EXACT_NO_PART, EXACT_TIGHTNESS = (1e-5, 1e-7, 1e-9, 1e-12), 10.0
# If there are fewer points than products: terms in a sum, and sums of each number of terms that are tried.
EXACT_MOST_TERMS, EXACT_MOST_SETS = 4, 1000
# The term of the highest order must be at least this part of some value; counts have coefficients of order one.
EXACT_LEAST_LEAD = 1e-5
# Coefficients of loops are whole numbers, or halves, thirds, quarters, sixths (triangles, pyramids).
LOOP_DENOMINATOR = 12.0
# Coefficients of recursions: a·f(n/2) + n is n·2/(2 - a), which are fifths for a = 7.
RECURSION_DENOMINATOR = 60.0
# With this number of values of a parameter, sums of two terms and a constant have no degree of freedom.
FEW_VALUES = 3
# Coefficients come from fits, which lose digits; the whole model is compared with the counts to all digits.
FEW_TOLERANCE = 1e-6
# Parts of a coefficient below this part of the counts are 0.
FEW_NOTHING = 1e-9

# --- counts that no function explains: tests/modeling/pmnf/test_steep.py
# A model with a larger relative residual describes its counts poorly; random counts deviate by less. Above the second
# number, a model of counts with equal repetitions has a note.
FAR_OFF, SAID_OFF = 0.25, 0.05

# --- counts that are rounded: tests/modeling/pmnf/test_rounded.py, benchmarks/priors_evaluation.py
# The prior of the magnitude of a coefficient is between 1e-10 and 1e10.
ROUNDED = Penalties(coefficient=7.5, complexity=1.0, negative=5.0)
# Deviations in counts: the expected one, and the largest one that is still rounding.
ROUNDING_EXPECTED, ROUNDING_MOST = 1.0, 8.0
# A term must be at least this multiple of the largest deviation at some point.
ROUNDED_LEAST_TERM = 8.0
# The evidence beyond the coefficients (logarithm of variation over rounding, for each further value) must exceed the
# logarithm of the number of tried functions.
ROUNDED_LEAST_EVIDENCE = 16.0
# The evidence beyond a simpler function with deviations must exceed the logarithm of the number of sets of two
# functions (about 2000). Sums of two rounded terms with 5 to 7 points within 1 % at 8 times the largest value: 61 %
# without this, and 60, 60, 58, 55 % with 6, 8, 11, 16. The function n with deviations of 0.1 %, measured once: 77, 23,
# 10, 0, 0 % are mistaken for such sums.
ROUNDED_LEAST_GAIN = 8.0
# Sets of functions of one parameter that are combined, by the number of parameters; products in a sum.
ROUNDED_SETS = {1: 24, 2: 6, 3: 2}
ROUNDED_PRODUCTS = 3

# --- counts that deviate: benchmarks/effort_sums.py, tests/modeling/pmnf/test_inexact.py, benchmarks/modeling_speed.py
INEXACT = Penalties(coefficient=5.0, complexity=3.0, negative=5.0, growth=2.0)
# Weights of small counts: whole numbers below the first count as the first, or as the second part of the largest value
# if this is less; all values count as at least the third part of the largest value.
SMALL_COUNT, SMALL_COUNT_PART, LEAST_WEIGHED = 60.0, 0.05, 1e-3
# Prior of the relative deviations, with the certainty of this number of observations.
EXPECTED_DEVIATION, DEVIATION_CERTAINTY = 0.003, 2.0
# The smallest deviation that repetitions with other data can give.
LEAST_EXPECTED_DEVIATION = 0.0003
# The weight of repetitions relative to configurations for these deviations (4 in uncertainty.py, too), and the variance
# of a uniform distribution of rounding errors, in units of the rounding.
REPETITIONS_KNOW, VARIANCE_OF_ROUNDING = 4.0, 1.0 / 12.0
# A parameter has an effect if values differ by more than this along a line.
LEAST_EFFECT = 0.01
# A term must be at least this part of some value, times (1 + its steepest exponent)², and this number of deviations …
LEAST_SHARE, MOST_SHARE, LEAST_DEVIATIONS = 0.025, 0.3, 2.0
# … or this number of deviations if repetitions show that deviations are small (MOST_SHARE if deviations are unknown).
SHOWN_DEVIATIONS = 100.0
# For terms below the highest order, which do not determine the growth, this number of deviations is enough.
SHOWN_BELOW_LEAD = 10.0
# … among the values that are at least this part of the largest value.
LEAST_WORK = 0.01
# Terms up to this complexity are in sums of two; sums of products use this number of terms per parameter. A sum is
# rejected if, up to this multiple of the largest value of a parameter, its growth exceeds the largest growth between
# two measured values by this power: programs do not grow in this way, but sums with as many functions as values do.
TURN_AT, TURN_POWER = 4.0, 1.5
INEXACT_PAIR_COMPLEXITY = 1.0
# Of one parameter, all sums of two and of three terms up to this complexity are tried.
INEXACT_SIMPLE_COMPLEXITY = 0.95
INEXACT_TERMS = {1: 6, 2: 3, 3: 2}
# Single products use this number of terms per parameter.
INEXACT_PURE_TERMS = 2
# Sums of three products are extensions of this number of the best sums of two.
INEXACT_PAIRS_KEPT = 6

# --- one process may follow another formula: tests/modeling/pmnf/test_effort.py
# Counts with larger relative deviations from their model are not near-exact.
LARGE_ERROR = 0.04
# Complexity of terms that loops and trees do not have.
UNUSUAL_COMPLEXITY = 0.5
# Evidence that a separate formula for one process needs, beyond the penalty of the count as a coefficient. Sums of one
# to three functions at 1 to 64 processes with deviations of 1 %, 400 of each kind: with 0, 5 and 10, 85, 86 and 86 %
# are within 5 % at 512 processes if one process follows the same formula, and 86, 86 and 85 % if not; without the
# comparison 84 and 71 %.
OTHER_FORMULA_ODDS = 5.0

# --- noisy values: benchmarks/modeling_accuracy.py; Extra-P's least part from Extra-P 4.2.5
# The penalty of a coefficient is 3, instead of log(points) in the Bayesian information criterion. With 5, 6, 6.5 for a
# parameter, 1.5, 0.9, 0.6 % of constants are more than 20 % off at 16 times the range, and 53.5, 53.2, 53.0 % of all
# functions are within 5 % one step out, with noise of 2 to 25 % (modeling_layouts.py, constants and cells).
NOISY = Penalties(coefficient=3.0, complexity=0.5, negative=5.0, parameter=6.0)
# Penalty of each factor if points on crossing lines do not distinguish hypotheses, such as x·y + y and x + y: the one
# with fewer factors comes first. benchmarks/modeling_layouts.py, lines m=2 1%, three seeds: 64.2 % are within 5 % one
# step out, instead of 62.7 % if rounding decides
NOISY_FACTOR = 1e-5
# Penalty of each term and of each two units of its exponent (Options.growth_penalty) if nothing confirms the growth:
# times of operations without other information, and parameters with two values, through which every power passes.
UNCHECKED_GROWTH = 4.0
# Smallest exponent of left-out errors in the mean with errors at fitted points, even if repetitions determine the
# noise.
LEAST_LEFT_OUT = 0.25
# The same for counts that deviate, at points that form no lines.
SCATTERED = Penalties(coefficient=3.0, complexity=3.0, parameter=3.0)
# Terms per parameter that are combined with each other, by number of parameters; lines that they come from.
NOISY_TERMS = {1: 0, 2: 4, 3: 2, 4: 2}
NOISY_LINES = 1000
# How often the terms of all parameters are tried again.
NOISY_SWEEPS = 2
# If points form no lines: forms that are tried, and rounds over the terms of their parameters.
# benchmarks/modeling_layouts.py, scattered points.
SCATTERED_FORMS, SCATTERED_SWEEPS = 16, 3
# Smallest number of points beyond the coefficients of an exact sum; otherwise counts of one digit have a sum by
# coincidence.
SCATTERED_FREEDOM = 4
# Highest degree of polynomials in the other parameters, and points per coefficient.
SCATTERED_DEGREE, SCATTERED_POINTS = 4, 1.5
# If the squares of residuals exceed those of noise by this number of standard deviations, richer sums are tried, which
# need this evidence beyond their penalties. With less, noise of 5 % turns some single functions into sums
# (modeling_accuracy.py).
SIGNIFICANT_MISFIT, RICHER_EVIDENCE = 3.0, 10.0
# Richer sums for residuals larger than the repetitions explain: number of precise fits, of added products, and how far
# beyond the measured values they must be positive. modeling_layouts.py, shapes
RICHER_FINALISTS, RICHER_TERMS, RICHER_BEYOND = 8, 2, (2.0, 4.0, 8.0, 16.0, 64.0)
# Terms up to this complexity take part in sums of two; penalty of each order of growth where nothing fits.
RICHER_COMPLEXITY, RICHER_GROWTH = 3.5, 5.0
# Highest order (as in Tables.order) of sums with negative parts: log2².
RICHER_ORDER = 0.25
# Powers between those of the library, for a parameter with this number of values: steps per unit of the exponent;
# penalty of the best one in addition to its complexity; largest difference of its rough score from the likeliest
# hypothesis. benchmarks/modeling_layouts.py, other power at 5 % noise, six seeds: error 2.60 % without them, and 1.70,
# 1.82, 1.95, 2.00 % with a penalty of 5, 7, 8, 9. a·p³ + b·p is in 83.3 % of intervals at 16 times the largest value
# without them, and in 83.1, 84.4, 84.7, 85.6 % with them.
POWERS_LEAST_VALUES, POWERS_STEPS = 5, 50
POWERS_PENALTY, POWERS_NEAR = 7.0, 2.0
# Extra-P removes a term whose part of the value is smaller than this everywhere.
EXTRAP_LEAST_PART = 5e-4

# --- posterior weights and intervals: coverage in benchmarks/modeling_layouts.py
# Hypotheses per call path that are kept, of noisy values and of counts.
NOISY_POOL, COUNT_POOL = 12, 4
# Hypotheses per call path and short list that are fitted precisely, if their rough scores are close enough to the best
# one for a posterior weight.
FINALISTS, NEAR = 4, 25.0


@dataclass(frozen=True)
class Depth:
    """The effort of a search: hypotheses per list and, if points form no lines, forms and rounds over their terms."""

    finalists: int = FINALISTS
    forms: int = SCATTERED_FORMS
    sweeps: int = SCATTERED_SWEEPS


USUAL = Depth()
# Number of the largest call paths with a thorough search if the usual search does not explain them: 60 ms of a
# processor each for four parameters. benchmarks/modeling_layouts.py, scattered points without noise: exact 78 -> 90 %
# at m = 4, 94 -> 98 at 3
THOROUGH, THOROUGH_PATHS = Depth(finalists=8, forms=64, sweeps=6), 200
# Relative standard errors above this count as unlimited: intervals end there.
MOST_DEVIATION = 5.0
# Hypotheses with a smaller posterior weight are not kept.
LEAST_WEIGHT = 0.02
# A constant with this weight is the model; other forms need half of the weight. benchmarks/modeling_layouts.py, six
# seeds: with .5, .45, .4, .35, .3, .93, .82, .68, .55, .44 % of constants are more than 20 % off at 16 times the range,
# and 50.3, 50.3, 50.1, 50.0, 50.0 % of functions of one parameter are within 5 % one step out (noise of 1 to 75 %)
LEAST_CONSTANT = 0.35
# Additional variance per parameter after the second: the best of many combinations fits better than the true function,
# by more than the near-best hypotheses show. From planted functions with noise of 2 to 10 %.
SELECTION_VARIANCE = 0.2

# Standard deviation of the prior of the difference between an exponent of a model and the true exponent.
EXPONENT_DEVIATION = 1.0
# The same for the curvature: the change of exponents per factor e of a parameter.
CURVATURE_DEVIATION = 0.3
# The same for a time whose form follows from effort, relative to both: caches and contention change exponents by tenths
# (benchmarks/priors_applications.py).
BEYOND_EFFORT = 0.1
# Prior probability that a form of one part and a constant is correct. benchmarks/modeling_layouts.py, cells of two and
# three parameters, and shapes: with .1, the true value is in more than 96 % of intervals in 28 of 84 cells instead of
# 35, but in fewer than 85 % in two cells instead of none, and exponential saturation (5 % noise) is in 76 % instead of
# 82 % of intervals
FORM_RIGHT = 1 / 27
# Number of forms from which each exponent was chosen, if residuals distinguish them. Without repetitions and with
# hardly more points than coefficients and exponents, the best form fits by coincidence. Functions of 3, 4 and 5 points
# with noise of .3 to 8 %, whose models leave one, one and two degrees of freedom, are in 84, 78, 78 % of intervals at
# twice the largest value with 1, in 92, 91, 92 % with 8, and in 95, 97, 95 % with 16.
FORMS_PER_EXPONENT = 8.0
# Hidden products of parameters that never change together: their exponents, and the weight of all of them, which is
# smaller if the relative standard error of a value is not far above the second number. On lines of two and three
# parameters with 1 % noise, 92 to 94 and 88 to 92 % of intervals contain the true value, and 88 to 92 and 87 to 90 %
# with .005. At one point where both parameters change, such a product may be as large as this point allows: for 300
# functions on crossing lines with one further point and noise of 2 and 5 %, 74 to 83 % of intervals contain the true
# value without such products, and 81 to 86 % with them.
HIDDEN_EXPONENTS, HIDDEN_SELDOM = (1, 2), 1
HIDDEN_WEIGHT, HIDDEN_NOISE = 0.2, 0.002
# Hidden terms that grow faster than the model: exponents of one parameter; prior odds that there is one, and in
# addition to a constant; smallest part at its largest value (uniform in its logarithm up to 1, in this number of
# steps); number of equally likely parts of its posterior; largest part elsewhere; number that is kept, and smallest
# weight. benchmarks/modeling_layouts.py, shapes and cells, 5 % noise: with odds of .4 for all, a·p³ + b·p is in 69 % of
# intervals, and intervals of constants of one parameter end at 1.5 times the value at 16x (median); with .7 and .25, 83
# % and 1.2 times; with .7 in one part, 74 %. For another six seeds, with powers between those of the library (penalty
# 5): 80.6, 83.1, 83.6 % at 16x with odds of .7, .9, 1.
UNSEEN_EXPONENTS = (1, 2, 3)
UNSEEN_ODDS, UNSEEN_ODDS_CONSTANT = 0.9, 0.25
UNSEEN_LEAST, UNSEEN_STEPS, UNSEEN_PARTS = 0.01, 9, 3
UNSEEN_SLOWEST, MOST_UNSEEN, LEAST_HIDDEN = 0.5, 3, 1e-3
# A hidden term needs this part of its squares outside the span of the model's parts; residuals are relative to the
# model, or to this part of its largest value, and are limited to this multiple.
DEPENDENT_SQUARES, LEAST_SIZE, MOST_REST = 1e-6, 1e-6, 1e6
# Relative variances below this are rounding; the uncertainty needs at least this variance.
LEAST_VARIANCE = 1e-12
# A parameter is a combination of others if its logarithms differ from a sum of theirs by less than this part.
TOGETHER = 1e-6

# Standard deviations by which mean squares of residuals exceed the noise by chance.
LUCK_OF_SQUARES = 2.0
# Smallest number of windows of four neighbours to distinguish noise from curvature without repetitions.
NEIGHBOURS_LEAST = 3
# Residuals above this multiple of the scatter of repetitions cause a note on a misfit, unless they are below the second
# number.
MISFIT, MISFIT_SAID = 2.0, 0.01
# A note names another form if it has this part of the weight of the best form, and its prediction one step out differs
# by this part.
SPLIT_LEAST, SPLIT_APART = 0.5, 0.25

# Relative weight (as a power of e) of the largest points in fits of forms that do not explain the values, compared with
# points with the smallest value of a parameter. benchmarks/modeling_layouts.py, shapes: 8 is better for steps and
# saturation, worse for several steps
LARGEST_FIRST = 4.0

# --- double precision, and sizes of batches: benchmarks/modeling_speed.py
# A column whose part orthogonal to the others is smaller than this carries no information of its own.
DEPENDENT = 1e-10
# A product is 0 if its part of the largest noisy value is less than this.
NO_PART = 1e-13
# Exponentials of numbers up to this are finite.
LARGEST_LOGARITHM = 700.0
# Added to the diagonal of Gram matrices of columns of length one, and to squared sines between columns.
RIDGE = 1e-13
# Squared relative errors of noisy values that normal equations cannot distinguish from 0.
NOISY_ROUNDING = 1e-12
# Variances of relative errors count as at least this: its square root is far below double precision.
NOISY_LEAST_VARIANCE = 1e-24
# Parts of the squares of values that sums of squares on a line, and normal equations of all points, may lose.
LOST_ON_LINES, LOST_IN_GRAM = 1e-13, 1e-11
# Approximate size of arrays of one batch in numbers, so that they stay in the cache.
BATCH_NUMBERS = 1 << 16
# Up to this number, repetitions of many call paths are sorted together: 5 in a fifth of the time, 8 in half of it.
FEW_REPETITIONS = 8
# Call paths times sets of functions, and call paths of counts that are not exact, at a time.
BATCH_SETS, BATCH_COUNTS = 1 << 14, 256
