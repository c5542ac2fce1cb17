// Writes the C code of an arm's inverse dynamics as Pinocchio generates it through CasADi.

#include <pinocchio/autodiff/casadi.hpp>

#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "arm.hpp"

int main()
{
  using casadi::SX;
  using Vector = Eigen::Matrix<SX, Eigen::Dynamic, 1>;
  const auto model = arm<SX>();
  pinocchio::DataTpl<SX> data(model);
  const int n = model.nv;
  const SX symbols[] = {SX::sym("q", n), SX::sym("dq", n), SX::sym("ddq", n)};
  Vector x[3];
  for (int part = 0; part < 3; ++part) {
    x[part].resize(n);
    for (int i = 0; i < n; ++i) x[part][i] = symbols[part](i);
  }
  pinocchio::rnea(model, data, x[0], x[1], x[2]);
  SX tau(n, 1);
  for (int i = 0; i < n; ++i) tau(i) = data.tau[i];
  const casadi::Function function("pinocchio_generated", {symbols[0], symbols[1], symbols[2]}, {tau});
  function.generate("pinocchio_generated.c");
}
