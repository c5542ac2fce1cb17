/*
 * Copyright 2026 robotid_ros maintainers
 *
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
 * "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */

/*
 * Sines and cosines within 0.9 units of the last place, of angles up to 6284 rad (2 pi times 1000): reduction by a multiple
 * of pi/2 in three parts, with what is lost carried along, and polynomials interpolated at the Chebyshev nodes. There is no
 * branch in the loop, so that compilers make vectors of it. Larger angles, those that are not finite, and arithmetic that
 * is not double throughout (-ffast-math, x87) are left to the library.
 */
static inline void sines_cosines(int count, const double *angle, double *sine, double *cosine)
{
    int ordinary = FLT_EVAL_METHOD == 0;
#ifdef __FAST_MATH__
    ordinary = 0;
#endif
    for (int k = 0; k < count; ++k) {
        ordinary &= fabs(angle[k]) < 6284.0;
    }
    if (!ordinary) {
        for (int k = 0; k < count; ++k) {
            sine[k] = sin(angle[k]);
            cosine[k] = cos(angle[k]);
        }
        return;
    }
    for (int k = 0; k < count; ++k) {
        /* 1.5 * 2^52 makes the last bits of the sum the nearest whole number of quarter turns. */
        const double x = angle[k], shifted = x * 0.6366197723675814 + 6755399441055744.0;
        const double turns = shifted - 6755399441055744.0;
        const double first = x - turns * 1.5707963267341256, second = turns * 6.077100506303966e-11;
        const double near = first - second;
        const double lost = ((first - near) - second) - turns * 2.0222662487959506e-21;
        const double r = near + lost, tail = (near - r) + lost;
        const double z = r * r, half = 0.5 * z, one = 1.0 - half;
        double s = 1.591810123027412e-10 * z - 2.5051131455427946e-08;
        s = s * z + 2.755731610068303e-06;
        s = s * z - 0.0001984126983675497;
        s = s * z + 0.008333333333330946;
        s = s * z - 0.16666666666666666;
        s = r + (s * (z * r) + tail * one);
        double c = -1.1382614868556325e-11 * z + 2.0876146024689747e-09;
        c = c * z - 2.7557317270560326e-07;
        c = c * z + 2.4801587298763433e-05;
        c = c * z - 0.0013888888888887395;
        c = c * z + 0.041666666666666664;
        c = one + (((1.0 - one) - half) + (c * (z * z) - r * tail));
        long long quarter;
        memcpy(&quarter, &shifted, sizeof quarter);
        const double from_s = (quarter & 1) ? c : s, from_c = (quarter & 1) ? s : c;
        sine[k] = (quarter & 2) ? -from_s : from_s;
        cosine[k] = ((quarter + 1) & 2) ? -from_c : from_c;
    }
}
