# SPDX-License-Identifier: Apache-2.0
"""Every constant of the models, in the order of the pipeline.

Each group names the benchmark that its numbers must pass again when one of them changes, or the source they are from.
Penalties and evidence are in units of twice the logarithm of the likelihood; complexity is that of
hypotheses.library.make_term.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Penalties:
    """What evidence must outweigh.

    Of each coefficient, each point of complexity of terms, each negative coefficient, each parameter that has an effect
    at all (among many functions of it one will follow the noise), and each order of growth.
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
# Those of recursions, log2(3) and log2(7), are tried only where a size doubles and nothing else reproduces counts.
RECURSION_COMPLEXITY = 1.0
# log2(x) and x·log2(x) are simpler than other products with one logarithm, and log2²(x) than other squares of it.
LOG_COMPLEXITY, LOG_PRODUCT_COMPLEXITY = 0.25, 0.75
SQUARED_LOG_COMPLEXITY, SQUARED_LOG_PRODUCT_COMPLEXITY = 1.0, 2.0
# Negative exponents (one more point for each logarithm), and each unit of whole exponents above 1.
NEGATIVE_COMPLEXITY, POWER_COMPLEXITY = 0.5, 0.1

# --- data: benchmarks/modeling_accuracy.py; the last four from double precision
# Repetitions further from their median than this many robust deviations do not enter the mean.
OUTLIER = 4.0
# How far beforehand the logarithm of the variance of a value may change with that of the value: the variance of sums of
# independent events goes like 1/value, relatively. benchmarks/effort_sums.py
SCATTER_SLOPE = 1.0
# More lines than this add little to what they say about one parameter.
MOST_LINES = 9
# Weights from a model are at most so many times those from the values, or the inverse.
WEIGHT_RATIO = 2.0
# Variances between configurations must be so many standard deviations above those that noise makes.
SIGNIFICANT_VARIATION = 2.0
# Noise below this is no matter of concern; scatter of repetitions above this is said in a note.
LOUD_NOISE, LARGE_SCATTER = 0.05, 0.5
# Values of call paths are scaled when their logarithm to base 2 is beyond this, so that squares stay finite.
EXTREME_EXPONENT = 300
# Measured values beyond this count as infinite, and those below its inverse as 0.
LARGEST_VALUE = 1e250
# Parameter values beyond this have powers that are no numbers any more.
LARGEST_PARAMETER = 1e30
# Whole numbers up to this are exact.
WHOLE_UP_TO = 2.0**53

# --- counts that are exact: tests/modeling/pmnf/test_effort.py, benchmarks/priors_evaluation.py
EXACT = Penalties(coefficient=10.0, complexity=1.0, negative=15.0)
# Residuals up to this part of the variation of the values, and of the values, are rounding.
EXACT_RESIDUAL, EXACT_RESIDUAL_OF_SIZE = 1e-9, 2e-13
# Residuals without weights, in parts of the largest value, above which the weighted ones are no rounding.
NEARLY_EXACT = 1e-8
EXACT_LINES = 6
# Counts weigh relatively, but at least as this part of the largest one; more where squares of weights rank sets.
EXACT_LEAST_WEIGHED, RANKED_LEAST_WEIGHED = 1e-4, 1e-2
# Sets whose squares are more than this part of those of the values are not fitted precisely.
EXACT_NEAR = 1e-6
# Values that are no whole numbers are known to this part of the largest one.
EXACT_RESOLUTION = 1e-9
# Coefficients of loops are whole if they are so near to whole numbers, and to this part of that if they are larger.
WHOLE, WHOLE_OF_SIZE = 1e-6, 1e-3
# Coefficients of exact models lose the digits that rounding leaves of whole numbers.
WHOLE_COEFFICIENT = 1e-7
# Terms up to this complexity take part in sums of two and of three.
EXACT_PAIR_COMPLEXITY, EXACT_TRIPLE_COMPLEXITY = 1.5, 1.0
# Products whose parts in all values are below one of these are left out, from the largest, where the rest reproduces
# the counts to so many times the residuals of all products, or to the last of these, which is rounding.
EXACT_NO_PART, EXACT_TIGHTNESS = (1e-5, 1e-7, 1e-9, 1e-12), 10.0
# Where points are fewer than products: terms in a sum, and sums of each number of terms that are tried.
EXACT_MOST_TERMS, EXACT_MOST_SETS = 4, 1000
# The term of the highest order must be at least this part of some value; counts have coefficients of order one.
EXACT_LEAST_LEAD = 1e-5
# Coefficients of loops are whole numbers, or halves, thirds, quarters, sixths (triangles, pyramids).
LOOP_DENOMINATOR = 12.0
# Of recursions parts of what is left of its powers, too: a·f(n/2) + n is n·2/(2 - a), fifths where a is 7.
RECURSION_DENOMINATOR = 60.0
# A parameter with so many values leaves no freedom to sums of two terms and a constant.
FEW_VALUES = 3
# Coefficients come from fits, which lose digits; the whole model is compared with the counts to all of them.
FEW_TOLERANCE = 1e-6
# Parts of a coefficient that are less than this part of the counts are none.
FEW_NOTHING = 1e-9

# --- counts that are exact functions of visits: benchmarks/effort_sums.py
# Ratios of counts to visits differ by less than this, relatively, where they are the same; runs or configurations that
# a sum must reproduce beyond its coefficients.
VISITS_AGREE, VISITS_LEAST_FREE = 1e-9, 2
# As many if other sums of functions reproduce them, too: with one less, counts of an adaptive mesh (miniAMR) and of
# blocks that are dealt out to a grid are such sums by luck, and predictions at four times the ranks worse than without.
VISITS_UNDECIDED_FREE = 3
# Powers of a parameter in what a visit does; terms of sums, by the number of parameters that vary.
VISITS_MOST_POWER = 3
VISITS_TERMS = {1: 4, 2: 2}
# Of two parameters, terms of richer sums, and how many more runs than terms must tell these.
VISITS_MOST_TERMS, VISITS_RICHER_FREE = 3, 8
# Call paths at most whose visits are tried for the counts of one: tests/modeling/visits/test_carriers.py
VISITS_MOST_TRIED = 8

# --- counts that grow fast: tests/modeling/pmnf/test_steep.py
# Growth between the last two values, as a power of the parameter, from which on it is looked for; the library ends at
# n³, whose terms of lower order make it look slower. The largest power (tensors of coupled-cluster methods: n⁷).
STEEP, STEEP_POWER = 2.25, 8
# The same for recursions, of which n^log2(3) grows least; others may be beside them.
STEEP_RECURSION = 1.2
# Values of a parameter, at least, and its largest one as a logarithm: sizes are below 2^60.
STEEP_VALUES, STEEP_DOUBLINGS = 4, 60
# What powers must miss, relative, before counts that deviate are those of 2ⁿ: so much do data and chance make.
STEEP_MISSED = 0.02
# Which part of the residual functions of another kind must leave where no function reproduces the counts.
FAR_BETTER = 1 / 3
# Residual, relative, of counts beyond which a model says little: those that depend on chance deviate by less. Beyond
# the second a note says what a model misses counts by whose repetitions are the same.
FAR_OFF, SAID_OFF = 0.25, 0.05

# --- counts that are exact but at one configuration: tests/modeling/pmnf/test_one_exception.py
# So many configurations, and so many beyond the coefficients, show that one of them is the exception; the posterior
# weight of the model that has it.
EXCEPTION_LEAST_POINTS, EXCEPTION_FREE, EXCEPTION_DOUBT = 9, 6, 0.1
# It is off by this part of the largest count at least: else it is none, and what is left has a function by luck.
EXCEPTION_LEAST = 1e-6

# --- counts of what a process has of a whole: tests/modeling/pmnf/test_shares.py
# The dimensions of the whole (items, matrices, volumes), and how many different shares there must be. Functions of them
# are looked for where smooth functions, of so high a power of the logarithm, leave less than others.
SHARE_DIMENSIONS, SHARE_VALUES, SMOOTH_POWER = (1, 2, 3), 5, 3
# What functions of a share may miss, relative: those of sorts and searches are within a few percent.
SHARE_MISSED = 0.05

# --- counts that rise in steps: tests/modeling/pmnf/test_steps.py, benchmarks/effort_sums.py
# Units of steps that are tried: runs that are sorted before they are merged, blocks, leaves of trees.
STEPS_MOST_UNIT = 64
# Steps that the values must show, functions in a sum, and sums of near-zero residuals that are tried for exactness.
STEPS_LEAST, STEPS_MOST_TERMS, STEPS_TRIED = 2, 3, 32
# One step is enough for an exact sum if there are so many below the smallest value: three passes that become four make
# work 4/3 times as much, which says how many there were. One that becomes two may be any change.
STEPS_BEFORE_ONE = 2

# Of counts that deviate, sums with steps of these bases must have so much evidence beyond how many were tried. With 0,
# 4 and 8 at deviations of .3 to 3 %, which fall with n, .4, .2 and 0 % of sums of powers and logarithms are taken for
# such, and .1, 0 and 0 % with five repetitions.
STEPS_DEVIATING_BASES, STEPS_LEAST_GAIN = (2, 4), 0.0

# --- counts of work in blocks: tests/modeling/pmnf/test_blocks.py
# Sizes of blocks that are tried: all up to the first, then powers of two up to this one; numbers of blocks that differ.
BLOCKS_MOST_SIZE, BLOCKS_MOST_SIZE_DOUBLED, BLOCKS_LEAST = 4096, 24, 3
# Sizes times points, at most (16 MB), and parameters up to which powers of each beyond the first are tried.
BLOCKS_MOST_NUMBERS, BLOCKS_MOST_PARAMETERS = 2_000_000, 3
# Classes of sizes that leave less than this part of the largest count are tried for exactness, at most so many; what
# counts must say beyond how many sums were tried.
BLOCKS_NEAR, BLOCKS_TRIED, BLOCKS_LEAST_GAIN = 1e-6, 32, 1.0

# --- counts that are rounded: tests/modeling/pmnf/test_rounded.py, benchmarks/priors_evaluation.py
# The magnitude of a coefficient may be anything between 1e-10 and 1e10.
ROUNDED = Penalties(coefficient=7.5, complexity=1.0, negative=5.0)
# Deviations in counts: what is expected, and the largest one that is still rounding.
ROUNDING_EXPECTED, ROUNDING_MOST = 1.0, 8.0
# A term must be so many of the largest deviations somewhere.
ROUNDED_LEAST_TERM = 8.0
# What the values show beyond the coefficients (logarithm of variation over rounding, for each further value) must
# exceed the logarithm of the number of functions that are tried.
ROUNDED_LEAST_EVIDENCE = 16.0
# What they show beyond a simpler function with deviations must exceed the logarithm of the number of sets of two
# functions (some 2000). Sums of two rounded terms, 5 to 7 points, within 1 % at 8 times the largest: 61 % without this,
# 60, 60, 58, 55 % with 6, 8, 11, 16; n that deviates by 0.1 %, once each: 77, 23, 10, 0, 0 % are taken for such sums.
ROUNDED_LEAST_GAIN = 8.0
# Sets of functions of one parameter that are combined, by the number of parameters; products in a sum.
ROUNDED_SETS = {1: 24, 2: 6, 3: 2}
ROUNDED_PRODUCTS = 3

# --- counts that deviate: benchmarks/effort_sums.py, tests/modeling/pmnf/test_inexact.py, benchmarks/modeling_speed.py
INEXACT = Penalties(coefficient=5.0, complexity=3.0, negative=5.0, growth=2.0)
# Whole numbers below the first weigh as that many, or as the second part of the largest one if that is less; and all
# values at least as the third part of it.
SMALL_COUNT, SMALL_COUNT_PART, LEAST_WEIGHED = 60.0, 0.05, 1e-3
# What is known of the relative deviations beforehand, as certain as so many observations.
EXPECTED_DEVIATION, DEVIATION_CERTAINTY = 0.003, 2.0
# The least that repetitions with other data make of it.
LEAST_EXPECTED_DEVIATION = 0.0003
# Repetitions say of these deviations as much as so many times the configurations would (4 in uncertainty.py, too), and
# what is rounded deviates by a uniform distribution: variance in units of what is rounded to.
REPETITIONS_KNOW, VARIANCE_OF_ROUNDING = 4.0, 1.0 / 12.0
# A parameter has an effect if values differ by more than this along a line.
LEAST_EFFECT = 0.01
# A term must be at least this part of some value, times (1 + its steepest exponent)², and so many deviations ...
LEAST_SHARE, MOST_SHARE, LEAST_DEVIATIONS = 0.025, 0.3, 2.0
# (or, where repetitions show that deviations are small, so many of them: MOST_SHARE where none are known)
SHOWN_DEVIATIONS = 100.0
# Below the term of the highest order, which alone decides on growth, so many deviations are enough.
SHOWN_BELOW_LEAD = 10.0
# ... among the values that are at least this part of the largest one.
LEAST_WORK = 0.01
# Terms up to this complexity take part in sums of two; sums of products choose from so many terms per parameter.
# Sums that rise, up to so many times the largest value of a parameter, by a power that is so much larger than between
# any two measured values: programs do not, sums with as many functions as values do.
TURN_AT, TURN_POWER = 4.0, 1.5
INEXACT_PAIR_COMPLEXITY = 1.0
# Of one parameter, all sums of two and of three terms up to this complexity are tried.
INEXACT_SIMPLE_COMPLEXITY = 0.95
INEXACT_TERMS = {1: 6, 2: 3, 3: 2}
# Products that stand alone choose from so many terms per parameter.
INEXACT_PURE_TERMS = 2
# Sums of three products are tried from so many of the best sums of two.
INEXACT_PAIRS_KEPT = 6

# --- one process may follow another formula: tests/modeling/pmnf/test_effort.py
# Counts with larger relative deviations from their model are not near-exact.
LARGE_ERROR = 0.04
# Complexity of terms that loops and trees do not have.
UNUSUAL_COMPLEXITY = 0.5
# Evidence that another formula for one process needs beyond the coefficient that its count is. Sums of one to three
# functions at 1 to 64 processes that deviate by 1 %, 400 of each kind: of those that are the same at 1, 85, 86 and 86 %
# are within 5 % at 512 with 0, 5 and 10, of others 86, 86 and 85 %; without that comparison 84 and 71 %.
OTHER_FORMULA_ODDS = 5.0

# --- noisy values: benchmarks/modeling_accuracy.py; Extra-P's least part from Extra-P 4.2.5
# A coefficient costs 3 where the Bayesian information criterion has log(points). With 5, 6, 6.5 for a parameter 1.5,
# .9, .6 % of constants are more than 20 % off at 16 times the range, and 53.5, 53.2, 53.0 % of all functions within 5 %
# one step out at noise of 2 to 25 % (modeling_layouts.py, constants and cells).
NOISY = Penalties(coefficient=3.0, complexity=0.5, negative=5.0, parameter=6.0)
# Of hypotheses that points on crossing lines cannot tell apart, as x·y + y and x + y, that with fewer factors is first:
# a penalty of each that is none otherwise. benchmarks/modeling_layouts.py, lines m=2 1%, three seeds: 64.2 % are within
# 5 % one step out, 62.7 % where rounding decides
NOISY_FACTOR = 1e-5
# Penalty of each term and of each two units of its exponent (Options.growth_penalty) where nothing checks growth: times
# of operations of which nothing else is known, parameters with two values, through which every power goes.
UNCHECKED_GROWTH = 4.0
# Left-out errors count with this power at least beside those in sample, however well repetitions say what noise is.
LEAST_LEFT_OUT = 0.25
# Counts that deviate, at points on no lines.
SCATTERED = Penalties(coefficient=3.0, complexity=3.0, parameter=3.0)
# Terms per parameter that are combined with each other, by number of parameters; lines that they come from.
NOISY_TERMS = {1: 0, 2: 4, 3: 2, 4: 2}
NOISY_LINES = 1000
# How often the terms of all parameters are tried again.
NOISY_SWEEPS = 2
# Of points on no lines so many forms are tried by themselves, and the terms of their parameters so often again:
# benchmarks/modeling_layouts.py, scattered points.
SCATTERED_FORMS, SCATTERED_SWEEPS = 16, 3
# Points there must be beyond the coefficients of an exact sum there, or counts of one digit have one by chance.
SCATTERED_FREEDOM = 4
# Highest degree of polynomials in the other parameters, and points that there must be for each of their coefficients.
SCATTERED_DEGREE, SCATTERED_POINTS = 4, 1.5
# Squares of residuals so many standard deviations above those of noise let richer sums be tried, which must have so
# much evidence beyond their penalties: with less, noise of 5 % makes some of single functions (modeling_accuracy.py).
SIGNIFICANT_MISFIT, RICHER_EVIDENCE = 3.0, 10.0
# Richer sums where residuals are more than repetitions explain: how many are fitted precisely, how many products are
# added, and how far beyond the measured values they must not be negative. modeling_layouts.py, shapes
RICHER_FINALISTS, RICHER_TERMS, RICHER_BEYOND = 8, 2, (2.0, 4.0, 8.0, 16.0, 64.0)
# Terms up to this complexity take part in sums of two; penalty of each order of growth where nothing fits.
RICHER_COMPLEXITY, RICHER_GROWTH = 3.5, 5.0
# Highest order (as in Tables.order) of sums with negative parts: log2².
RICHER_ORDER = 0.25
# Powers between those of the library, of a parameter with so many values: parts of one in which exponents are tried;
# penalty of the one that fits best beside that of its complexity, and how much worse than the likeliest hypothesis its
# rough score may be. benchmarks/modeling_layouts.py, other power at 5 % noise, six seeds: error 2.60 % without them,
# 1.70, 1.82, 1.95, 2.00 % with a penalty of 5, 7, 8, 9; a·p³ + b·p is in 83.3 % of intervals at 16 times the largest
# value without them, in 83.1, 84.4, 84.7, 85.6 % with them.
POWERS_LEAST_VALUES, POWERS_STEPS = 5, 50
POWERS_PENALTY, POWERS_NEAR = 7.0, 2.0
# Extra-P gives up a term whose part in the value is smaller than this everywhere.
EXTRAP_LEAST_PART = 5e-4

# --- posterior weights and intervals: coverage in benchmarks/modeling_layouts.py
# Hypotheses per call path that are kept, of noisy values and of counts.
NOISY_POOL, COUNT_POOL = 12, 4
# Hypotheses per call path and short list that are fitted precisely, if their rough scores are so near to the best one
# that they may have a posterior weight.
FINALISTS, NEAR = 4, 25.0


@dataclass(frozen=True)
class Depth:
    """How much a search tries: hypotheses per list, and of points on no lines forms and rounds over their terms."""

    finalists: int = FINALISTS
    forms: int = SCATTERED_FORMS
    sweeps: int = SCATTERED_SWEEPS


USUAL = Depth()
# For so many of the largest call paths that the usual search does not explain: 60 ms of a processor each for four
# parameters. benchmarks/modeling_layouts.py, scattered points without noise: exact 78 -> 90 % at m = 4, 94 -> 98 at 3
THOROUGH, THOROUGH_PATHS = Depth(finalists=8, forms=64, sweeps=6), 200
# Relative standard errors above this are as good as unlimited: intervals end there.
MOST_DEVIATION = 5.0
# Hypotheses with a smaller posterior weight are not kept.
LEAST_WEIGHT = 0.02
# A constant with this weight is the model, where other forms need half of it. benchmarks/modeling_layouts.py, six
# seeds: with .5, .45, .4, .35, .3 of constants .93, .82, .68, .55, .44 % are more than 20 % off at 16 times the range,
# and of functions of one parameter 50.3, 50.3, 50.1, 50.0, 50.0 % are within 5 % one step out (noise of 1 to 75 %)
LEAST_CONSTANT = 0.35
# The best of many combinations fits better than the truth does; so much is added to the variance per parameter beyond
# two, beyond what the near-best hypotheses show. From planted functions with noise of 2 to 10 %.
SELECTION_VARIANCE = 0.2

# What is known beforehand of the difference between the exponent of a part of a model and that of the truth.
EXPONENT_DEVIATION = 1.0
# Likewise of the curvature: exponents change so much with each power of e of a parameter.
CURVATURE_DEVIATION = 0.3
# The same of a time whose form is that of an effort, as part of both: caches and contention make time grow by tenths of
# an exponent beyond effort (benchmarks/priors_applications.py), and not by whole ones.
BEYOND_EFFORT = 0.1
# Probability that a form of one part and a constant is right where values say nothing. benchmarks/modeling_layouts.py,
# cells of two and three parameters, and shapes: with .1 the truth is in more than 96 % of intervals in 28 of 84 cells
# and not in 35, but in fewer than 85 % in two and not in none, and exponential saturation (5 % noise) in 76, not 82 %
FORM_RIGHT = 1 / 27
# Forms that each exponent of a model was chosen from, as far as residuals tell them apart: where points are no more
# than coefficients and exponents, and nothing is repeated, the best one fits by luck. Functions of 3, 4 and 5 points
# with noise of .3 to 8 %, whose models leave one, one and two degrees of freedom beside coefficients, are in 84, 78,
# 78 % of intervals at twice the largest value with 1, in 92, 91, 92 % with 8, in 95, 97, 95 % with 16.
FORMS_PER_EXPONENT = 8.0
# Products that hide beneath the noise where parameters were never changed together: their exponents, and the weight of
# all of them, which is less where the relative standard error of a value is not far above the second number. On lines
# of two and three parameters, 1 % noise, 92 to 94 and 88 to 92 % of intervals hold the truth, with .005 88 to 92 and
# 87 to 90.
# So they may where one point has both changed, as large as that lets them be: of 300 functions on lines that cross and
# one point beside them, noise of 2 and 5 %, 74 to 83 % of intervals hold the truth without, 81 to 86 % with it.
HIDDEN_EXPONENTS, HIDDEN_SELDOM = (1, 2), 1
HIDDEN_WEIGHT, HIDDEN_NOISE = 0.2, 0.002
# Terms that grow faster than the model, as a small part of it wherever points are: exponents of one parameter; odds
# that there is one, and beside a constant; its least part at its largest (uniform in its logarithm up to 1, in so many
# steps); into how many equally likely parts its posterior is divided; how small it must be elsewhere; how many are
# kept, and the least weight. benchmarks/modeling_layouts.py, shapes and cells, 5 %
# noise: with odds of .4 for all a·p³ + b·p is in 69 % of intervals, and those of constants of one parameter end at 1.5
# times the value at 16x (median); with .7 and .25, 83 % and 1.2 times; with .7 in one part, 74 %. Of another six seeds,
# where powers between those of the library may take the place of such a sum (with a penalty of 5): 80.6, 83.1, 83.6 %
# at 16x with odds of .7, .9, 1.
UNSEEN_EXPONENTS = (1, 2, 3)
UNSEEN_ODDS, UNSEEN_ODDS_CONSTANT = 0.9, 0.25
UNSEEN_LEAST, UNSEEN_STEPS, UNSEEN_PARTS = 0.01, 9, 3
UNSEEN_SLOWEST, MOST_UNSEEN, LEAST_HIDDEN = 0.5, 3, 1e-3
# Part of the squares of such a term that must be left beside the parts of the model; residuals are relative to the
# model or to this part of its largest value, and count up to so many times that.
DEPENDENT_SQUARES, LEAST_SIZE, MOST_REST = 1e-6, 1e-6, 1e6
# Relative variances below this are rounding; what measurements leave open needs some to be seen.
LEAST_VARIANCE = 1e-12
# Logarithms of parameter values that differ by less than this part from a sum of others go together with them.
TOGETHER = 1e-6

# Mean squares of residuals are so many of their standard deviations above the noise by luck.
LUCK_OF_SQUARES = 2.0
# Windows of four neighbours there must be to tell noise from curves where nothing is repeated.
NEIGHBOURS_LEAST = 3
# Residuals so many times what repetitions explain are said to be a misfit, but for those below the second number.
MISFIT, MISFIT_SAID = 2.0, 0.01
# A form is said to be as likely if it has this part of the weight of the best one, and predicts something else one step
# out by this part.
SPLIT_LEAST, SPLIT_APART = 0.5, 0.25

# The largest points weigh so many times as much (as a power of e) as those with the smallest value of a parameter, in
# fits of forms that do not explain the values. benchmarks/modeling_layouts.py, shapes: 8 is better for steps and
# saturation, worse for stairs
LARGEST_FIRST = 4.0

# --- double precision, and sizes of batches: benchmarks/modeling_speed.py
# A column whose part orthogonal to the others is smaller than this carries no information of its own.
DEPENDENT = 1e-10
# A product whose part of the largest noisy value is less than this is none.
NO_PART = 1e-13
# Logarithms up to this have a number that is finite.
LARGEST_LOGARITHM = 700.0
# Added to the diagonal of Gram matrices of columns of length one, and to squared sines between columns.
RIDGE = 1e-13
# Squared relative errors of noisy values that normal equations cannot distinguish from 0.
NOISY_ROUNDING = 1e-12
# Variances of relative errors below this count as this: its square root is far below double precision.
NOISY_LEAST_VARIANCE = 1e-24
# Parts of the squares of values that sums of squares on a line, and normal equations of all points, may lose.
LOST_ON_LINES, LOST_IN_GRAM = 1e-13, 1e-11
# Arrays of one batch hold about this many numbers, so that they stay in the cache and memory stays small.
BATCH_NUMBERS = 1 << 16
# Up to so many repetitions are sorted many at a time: 5 of them in a fifth of the time, 8 in half of it.
FEW_REPETITIONS = 8
# Call paths times sets of functions, and call paths of counts that are not exact, at a time.
BATCH_SETS, BATCH_COUNTS = 1 << 14, 256
