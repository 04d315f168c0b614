// gitlab-ci-local is built for Node.js 22 and later; this is all that Node.js 20 lacks for what is asked of it here.
Set.prototype.union ??= function (other) {
  return new Set([...this, ...other]);
};
