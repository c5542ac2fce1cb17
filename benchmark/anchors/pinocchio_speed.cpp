// Inverse dynamics one sample at a time in one program: C++ Pinocchio, its code generation through CasADi, and the C
// that robotid_ros generates, on the same states. Prints their largest difference and nanoseconds per call.

#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "arm.hpp"
#include "robotid.h"

#ifdef WITH_CASADI
extern "C" int pinocchio_generated(const double **, double **, long long int *, double *, int);
#endif

constexpr int N = ROBOTID_JOINTS;
constexpr int STATES = 1000, ROUNDS = 200;

template<class Call>
double nanoseconds(Call call)
{
  std::vector<double> times;
  for (int round = 0; round < ROUNDS; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < STATES; ++k) call(k);
    times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / STATES);
  }
  std::nth_element(times.begin(), times.begin() + ROUNDS / 2, times.end());
  return times[ROUNDS / 2];
}

int main()
{
  using Vector = Eigen::VectorXd;
  const pinocchio::Model model = arm<double>();
  pinocchio::Data data(model);
  std::vector<Vector> q, dq, ddq, first(STATES), second(STATES), third(STATES);
  for (int k = 0; k < STATES; ++k) {
    q.push_back(3.0 * Vector::Random(N));
    dq.push_back(3.0 * Vector::Random(N));
    ddq.push_back(3.0 * Vector::Random(N));
    first[k] = second[k] = third[k] = Vector::Zero(N);
  }
  const double pin = nanoseconds([&](int k) { first[k] = pinocchio::rnea(model, data, q[k], dq[k], ddq[k]); });
  const double own = nanoseconds([&](int k) {
    robotid_inverse_dynamics(q[k].data(), dq[k].data(), ddq[k].data(), robotid_default_coefficients, second[k].data());
  });
  std::vector<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> rows(STATES);
  for (auto & each : rows) each.setZero(N, 10 * N);
  const double regressor = nanoseconds([&](int k) {
    rows[k] = pinocchio::computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k]);
  });
  double generated = NAN, error = 0.0;
#ifdef WITH_CASADI
  std::vector<double> work(100000);
  generated = nanoseconds([&](int k) {
    const double *in[] = {q[k].data(), dq[k].data(), ddq[k].data()};
    double *out[] = {third[k].data()};
    pinocchio_generated(in, out, nullptr, work.data(), 0);
  });
#endif
  for (int k = 0; k < STATES; ++k) {
    error = std::max(error, (first[k] - second[k]).cwiseAbs().maxCoeff());
#ifdef WITH_CASADI
    error = std::max(error, (first[k] - third[k]).cwiseAbs().maxCoeff());
#endif
  }
  std::printf("{\"error\": %.3g, \"pinocchio\": %.1f, \"generated\": %.1f, \"robotid\": %.1f, \"regressor\": %.1f}\n", error, pin,
    std::isnan(generated) ? -1.0 : generated, own, regressor);
}
