// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Gaussian elimination with partial pivoting on a matrix stored by columns:
 * J. Dongarra, J. Bunch, C. Moler, G. W. Stewart, LINPACK Users' Guide, SIAM
 * 1979, chapter 1 (SGEFA, SGESL), in double precision. The order of operations
 * is that of native/workloads/src/linpack, so that results agree to the bit.
 */
#include "solve.h"

static void swap_elements(double *x, double *y)
{
	double kept = *x;

	*x = *y;
	*y = kept;
}

/* y += factor * x */
static void daxpy(unsigned int n, double factor, const double *x, double *y)
{
	unsigned int i;

	if (factor == 0.0)
		return;
	for (i = 0; i < n; i++)
		y[i] += factor * x[i];
}

static void dscal(unsigned int n, double factor, double *x)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		x[i] *= factor;
}

/* Where the first element of the largest size is. */
static unsigned int idamax(unsigned int n, const double *x)
{
	unsigned int place = 0, i;

	for (i = 1; i < n; i++)
		if (__builtin_fabs(x[i]) > __builtin_fabs(x[place]))
			place = i;
	return place;
}

void linpack_generate(double *a, double *b)
{
	unsigned int state = 1325, i, j;

	for (i = 0; i < LINPACK_N; i++)
		b[i] = 0.0;
	for (j = 0; j < LINPACK_N; j++) {
		double *column = a + j * LINPACK_LEADING;

		for (i = 0; i < LINPACK_N; i++) {
			state = 3125 * state % 65536;
			column[i] = ((int)state - 32768) / 16384.0;
			b[i] += column[i];
		}
	}
}

/* The multipliers are stored negated. A zero pivot is left. */
void linpack_dgefa(double *a, unsigned int *pivots)
{
	unsigned int k, j;

	for (k = 0; k < LINPACK_N; k++) {
		double *column = a + k * LINPACK_LEADING;
		unsigned int pivot = k + idamax(LINPACK_N - k, column + k);
		unsigned int below = LINPACK_N - k - 1;

		pivots[k] = pivot;
		if (column[pivot] == 0.0)
			continue;
		swap_elements(column + pivot, column + k);
		dscal(below, -1.0 / column[k], column + k + 1);
		for (j = k + 1; j < LINPACK_N; j++) {
			double *other = a + j * LINPACK_LEADING;

			swap_elements(other + pivot, other + k);
			daxpy(below, other[k], column + k + 1, other + k + 1);
		}
	}
}

void linpack_dgesl(const double *a, const unsigned int *pivots, double *b)
{
	unsigned int k;

	for (k = 0; k + 1 < LINPACK_N; k++) {
		const double *column = a + k * LINPACK_LEADING;

		swap_elements(b + pivots[k], b + k);
		daxpy(LINPACK_N - k - 1, b[k], column + k + 1, b + k + 1);
	}
	for (k = LINPACK_N; k-- > 0;) {
		const double *column = a + k * LINPACK_LEADING;

		b[k] /= column[k];
		daxpy(k, -b[k], column, b);
	}
}
