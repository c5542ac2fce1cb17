// Copyright 2026 robotid_ros maintainers
//
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
// the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "class_loader/class_loader.hpp"
#include "inverse_dynamics.hpp"
#include "inverse_dynamics_solver/inverse_dynamics_solver.h"

TEST(Solver, HasThePartsOfTheTorque)
{
  class_loader::ClassLoader loader(SOLVER);
  const auto solver = loader.createInstance<inverse_dynamics_solver::InverseDynamicsSolver>("@NAME@::Solver");
  solver->initialize();
  constexpr int n = @NAME@::JOINTS;
  std::mt19937 draw(1);
  std::uniform_real_distribution<double> any(-3.0, 3.0);
  const auto vector = [&]() {return Eigen::VectorXd(Eigen::VectorXd::NullaryExpr(n, [&]() {return any(draw);}));};
  for (int k = 0; k < 100; ++k) {
    const Eigen::VectorXd q = vector(), dq = vector(), ddq = vector(), none = Eigen::VectorXd::Zero(n);
    const auto [inertia, coriolis, gravity] = solver->getDynamicParameters(q, dq);
    const Eigen::VectorXd torque = solver->getTorques(q, dq, ddq);
    EXPECT_LT((inertia * ddq + coriolis + gravity - torque).norm(), 1e-11 * torque.norm());
    Eigen::VectorXd rigid(n), rubbed(n);
    @NAME@::rigid_body(q.data(), dq.data(), ddq.data(), @NAME@::default_coefficients, rigid.data());
    @NAME@::friction(q.data(), dq.data(), none.data(), @NAME@::default_coefficients, rubbed.data());
    EXPECT_LT((torque + solver->getFrictionVector(dq) - rigid - rubbed).norm(), 1e-11 * torque.norm());
    EXPECT_EQ(solver->getFrictionVector(none).norm(), 0.0);
  }
  EXPECT_THROW(solver->getGravityVector(Eigen::VectorXd::Zero(n + 1)), std::invalid_argument);
  EXPECT_THROW(solver->initialize(nullptr, "", "<robot/>"), std::runtime_error);
}
